"""Cleaning: drops what earlier writes have left, and never fails the write that does it.

Each write cleans when it begins, and a stream after each of its batches. A table can't be dropped
while it is in use, while another writer drops it, or if it belongs to another role: it is left to a
later write.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.staging import SCHEMA, connect, discard, drop

DEAD_AFTER = timedelta(days=2)
"""A write shows that it is alive whenever a task ends, and a task may take long."""
_SQL = statements("harvest_dagster.spark", "clean.sql")


def discard_all(url: str, names: Iterable[str]) -> None:
    """Drop the staging tables of a write that is over, or leave them to a later one."""
    with suppress(psycopg.Error, OutboxError), connect(url) as connection:
        for name in names:
            discard(connection, name)


def clean(connection: psycopg.Connection[Any]) -> None:
    """Drop what dead writers have left, and the parts of outboxes that are drained."""
    for (name,) in connection.execute(_SQL["dead"].text, (DEAD_AFTER,)).fetchall():
        with suppress(psycopg.Error):
            drop(connection, name)
    for (name,) in connection.execute(_SQL["parts"].text).fetchall():
        with suppress(psycopg.Error):
            _drop_if_drained(connection, TableName(name, SCHEMA))


def _drop_if_drained(connection: psycopg.Connection[Any], part: TableName) -> None:
    """Drop a part that has no rows left.

    All who use the outbox wait for the lock, so it is taken only if the part seems empty.
    """
    with connection.transaction():
        connection.execute(_SQL["lock_time"].text)
        if _holds_rows(connection, part):
            return
    with connection.transaction():
        connection.execute(_SQL["lock_time"].text)
        connection.execute(_SQL["lock"].sql(part=part))
        if not _holds_rows(connection, part):
            connection.execute(_SQL["drop_part"].sql(part=part))


def _holds_rows(connection: psycopg.Connection[Any], part: TableName) -> bool:
    row = connection.execute(_SQL["holds_rows"].sql(part=part)).fetchone()
    return row is None or bool(row[0])
