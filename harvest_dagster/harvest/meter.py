"""How much waits, and for how long: read now and then, in a connection of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.harvest", "meter.sql")
COUNTED = 100_000
"""A backlog is counted up to this many records, and estimated beyond."""

SORTED = 10_000
"""So many of the first records that wait are looked at, and so many topics of them said."""
TOPICS = 20


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in an outbox; `exact` unless it was estimated."""

    records: int
    oldest_seconds: float
    exact: bool


def read_topics(connection: psycopg.Connection[Any], table: TableName) -> dict[str, int]:
    """Count, of the first records that wait, how many are for which topic, most first."""
    values = {"most": SORTED, "topics": TOPICS}
    return dict(connection.execute(_SQL["topics"].sql(table=table), values).fetchall())


def read_backlog(connection: psycopg.Connection[Any], table: TableName) -> Backlog:
    """Count what waits; beyond a bound, take the range of ids as the number."""
    row = connection.execute(_SQL["backlog"].sql(table=table), {"most": COUNTED}).fetchone()
    counted, first, last, oldest = row or (0, None, None, None)
    if counted < COUNTED or first is None or last is None:
        return Backlog(counted, oldest or 0.0, exact=True)
    return Backlog(last - first + 1, oldest or 0.0, exact=False)
