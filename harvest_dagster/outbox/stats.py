"""What waits in an outbox, and how its table does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.outbox", "stats.sql")


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """An outbox at one moment."""

    records: int
    first_id: int | None
    last_id: int | None
    oldest_seconds: float | None
    value_bytes: int
    disk_bytes: int
    dead_rows: int
    last_vacuum: datetime | None
    topics: dict[str, int]


def stats(
    connection: psycopg.Connection[Any], table: TableName, *, topics: int = 10
) -> OutboxStats:
    """Count; this reads the whole table."""
    cursor = connection.cursor(row_factory=dict_row)
    storage = cursor.execute(_SQL["storage"].text, (table.sql,)).fetchone()
    if storage is None:
        raise OutboxError(
            f"there is no table {table}: make it with `harvest outbox create --outbox {table}`"
        )
    totals = cursor.execute(_SQL["totals"].sql(table=table)).fetchone() or {}
    most = cursor.execute(_SQL["topics"].sql(table=table), (topics,)).fetchall()
    return OutboxStats(**totals, **storage, topics={row["topic"]: row["records"] for row in most})
