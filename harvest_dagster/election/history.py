"""What happened to an outbox: leaders, tours, and records set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.election", "history.sql")

Kind = Literal[
    "acquired",
    "refreshed",
    "revoked",
    "fenced",
    "tour_started",
    "tour_ended",
    "remarked",
    "ambiguous",
    "parked",
    "requeued",
    "discarded",
    "held",
    "released",
]
KINDS: dict[Kind, str] = {
    "acquired": "a candidate took the lease; who, and who had it before",
    "refreshed": "the leader began a new epoch, for a tour or after a round that failed; why",
    "revoked": "the leader handed over in good order; why",
    "fenced": "a leader lost its lease unasked; why",
    "tour_started": "a leader began to harvest",
    "tour_ended": "it ended in good order; what it has marked, published, purged",
    "remarked": "records in flight were given up and marked again; how many, and why",
    "ambiguous": "the same, when Kafka no longer knew what was published: doubles are possible",
    "parked": "Kafka refused a record for good, and it was set aside; which, and why",
    "requeued": "an operator put a parked record back; which, and who did",
    "discarded": "an operator let a parked record go; which, and who did",
    "held": "a topic can't be published to, so its records wait; which, and why",
    "released": "topics can be published to again; which",
}
"""What can happen, and what the event's detail tells of it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a shard of an outbox."""

    id: int
    at: datetime
    name: str
    shard: int
    epoch: int | None
    leader_id: UUID | None
    kind: str
    detail: dict[str, Any]


def record(  # noqa: PLR0913, PLR0917 - the columns of an event
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    epoch: int | None,
    leader_id: UUID | None,
    kind: Kind,
    detail: Mapping[str, object],
) -> None:
    """Write an event down."""
    values = {"name": name, "shard": shard, "epoch": epoch, "leader_id": leader_id, "kind": kind}
    connection.execute(_SQL["record"].text, {**values, "detail": Jsonb(dict(detail))})


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
        return cursor.execute(_SQL["read"].text, values).fetchall()
