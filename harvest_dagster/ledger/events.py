"""What happened to whatever is led: its leaders, its tours, and what each room adds of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.ledger", "events.sql")
NOTED = SQL(_SQL["noted"].text)
"""What stands for `{noted}` in a statement: it writes the rows of `happened` down."""
_RECORD, _READ = _SQL["record"].sql(noted=NOTED), _SQL["read"].sql()

KINDS: dict[str, str] = {
    "acquired": "a candidate took the lease; who, who had it before, and why not any more",
    "refreshed": "the leader began a new epoch, for a tour or after a round that failed; why",
    "revoked": "the leader handed over in good order; why",
    "fenced": "a leader lost its lease unasked; why",
}
"""What happens to a lease, and what the event's detail says of it; rooms have more kinds."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a shard of whatever is led."""

    id: int
    at: datetime
    name: str
    shard: int
    epoch: int | None
    leader_id: UUID | None
    kind: str
    detail: dict[str, Any]


def record(  # noqa: PLR0913 - the columns of an event
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    kind: str,
    detail: Mapping[str, object],
    *,
    epoch: int | None = None,
    leader_id: UUID | None = None,
) -> None:
    """Write an event down, whoever leads; a leader does so by its fence."""
    values = {"name": name, "shard": shard, "epoch": epoch, "leader_id": leader_id, "kind": kind}
    connection.execute(_RECORD, {**values, "detail": Jsonb(dict(detail))})


def read(
    connection: psycopg.Connection[Any],
    name: str | None = None,
    kinds: Sequence[str] = (),
    since_seconds: float | None = None,
    limit: int = 100,
) -> list[Event]:
    """Read events, newest first; of all kinds if none is named."""
    values = {"name": name, "kinds": list(kinds), "since": since_seconds, "limit": limit}
    with connection.cursor(row_factory=class_row(Event)) as cursor:
        return cursor.execute(_READ, values).fetchall()
