"""Ids of a large task: drawn from the outbox's sequence many at once.

To draw an id for each row is a quarter of what a COPY and its index cost PostgreSQL. A sequence
can't be asked for several at once; but it can be set, if nobody draws meanwhile:

    queue    after others who want to do the same
    hold     the lock that ALTER SEQUENCE takes, and that all who draw wait for
    jump     over as many ids as are wanted, which are ours

Whoever draws holds the sequence until his transaction ends, and those behind us wait with us: so we
ask for a millisecond, and if it is not to be had, ids are drawn one by one, which waits for nobody.
What a task leaves over of its ids nobody gets. It runs on the task's thread, and blocks on
PostgreSQL alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL

from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.staging import connect

_SQL = statements("harvest_dagster.spark", "ids.sql")
MANY = 500_000
SOME = 50_000

Numbers = np.ndarray[Any, Any]


def sequence_of(connection: psycopg.Connection[Any], table: TableName) -> str | None:
    """Tell where a table has its ids from, if many may be drawn at once."""
    row = connection.execute(_SQL["sequence"].text, (table.sql,)).fetchone()
    return row[0] if row else None


class Ids:
    """Ids of one sequence, each larger than all before it."""

    def __init__(self, url: str, sequence: str) -> None:
        self._url, self._sequence = url, sequence
        self._left: Numbers = np.empty(0, np.int64)

    def take(self, count: int) -> Numbers:
        """Take the next ids."""
        while len(self._left) < count:
            self._left = np.concatenate([self._left, self._draw()])
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def _draw(self) -> Numbers:
        """Draw more, over a connection of its own: the task's is in the midst of its COPY."""
        with connect(self._url) as connection:
            try:
                first = _jump(connection, self._sequence, MANY)
            except LockNotAvailable:
                return one_by_one(connection, self._sequence, SOME)
        return np.arange(first, first + MANY)


def _jump(connection: psycopg.Connection[Any], sequence: str, count: int) -> int:
    with connection.transaction():
        connection.execute(_SQL["queue"].text, (sequence,))
        connection.execute(_SQL["hold"].sql(sequence=SQL(sequence)))
        row = connection.execute(
            _SQL["jump"].text, {"sequence": sequence, "count": count}
        ).fetchone()
    assert row is not None  # noqa: S101 - it has no condition
    return int(row[0])


def one_by_one(connection: psycopg.Connection[Any], sequence: str, count: int) -> Numbers:
    """Draw as any INSERT does."""
    row = connection.execute(_SQL["draw"].text, (sequence, count), binary=True).fetchone()
    assert row is not None  # noqa: S101 - it is an aggregate
    return np.frombuffer(row[0], ">i8").astype(np.int64)
