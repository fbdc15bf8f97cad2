"""Who stands for election, and what keeps it from leading, where other processes can read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.ledger", "candidates.sql")
STAND_SECONDS = 5.0
"""How often a candidate says that it stands."""
_LATELY_SECONDS = 4 * STAND_SECONDS
"""Who has been silent for longer is gone; one that waits for Kafka or PostgreSQL speaks late."""


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A candidate, as it said last."""

    name: str
    holder: str
    troubles: list[str]
    since_seconds: float
    seen_seconds: float


def stand(
    connection: psycopg.Connection[Any], name: str, holder: str, troubles: Sequence[str]
) -> None:
    """Say that a candidate stands, and what keeps it from leading or may cost it the lease."""
    values = {"name": name, "holder": holder, "troubles": list(troubles)}
    connection.execute(_SQL["stand"].text, values)


def go(connection: psycopg.Connection[Any], name: str, holder: str) -> None:
    """Say that a candidate stands no more."""
    connection.execute(_SQL["go"].text, {"name": name, "holder": holder})


def read(connection: psycopg.Connection[Any], name: str | None = None) -> list[CandidateRow]:
    """Read who stands for something, or for anything."""
    values = {"name": name, "lately": _LATELY_SECONDS}
    with connection.cursor(row_factory=class_row(CandidateRow)) as cursor:
        return cursor.execute(_SQL["read"].text, values).fetchall()
