"""Ids of a large task: drawn from the outbox's sequence many at once.

To draw an id for each row is a quarter of what a COPY and its index cost PostgreSQL. A sequence
can't be asked for several at once; but it can be set, if nobody draws meanwhile:

    queue    after others who want to do the same
    hold     a lock that ALTER SEQUENCE takes, and that all who draw wait for
    jump     over as many ids as are wanted, which are ours

PostgreSQL is told all of it in one message, so it lets go whatever becomes of us. Whoever draws
holds the sequence until his transaction ends, and those behind us wait with us: so we ask for a
millisecond, and if it is not to be had, ids are drawn one by one, which waits for nobody. What a
task leaves over of its ids nobody gets. It runs on the task's thread, and blocks on PostgreSQL
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL, Literal

from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.staging import connect

_SQL = statements("harvest_dagster.spark", "ids.sql")
MANY = 500_000
SOME = 50_000

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Where a table has its ids from, and whose it is, both as SQL names them."""

    name: str
    owner: str


def sequence_of(connection: psycopg.Connection[Any], table: TableName) -> Sequence | None:
    """Tell where a table has its ids from, if many may be drawn at once."""
    row = connection.execute(_SQL["sequence"].text, (table.sql,)).fetchone()
    return Sequence(*row) if row else None


class Ids:
    """Ids of one sequence, each larger than all before it."""

    def __init__(self, url: str, sequence: Sequence, many: int = MANY, some: int = SOME) -> None:
        self._url, self._sequence, self._many, self._some = url, sequence, many, some
        self._left: Numbers = np.empty(0, np.int64)

    def take(self, count: int) -> Numbers:
        """Take the next ids; over a connection of its own, if more are to be drawn."""
        while len(self._left) < count:
            with connect(self._url) as connection:
                self.draw(connection)
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def draw(self, connection: psycopg.Connection[Any]) -> None:
        """Draw more, to be taken."""
        try:
            first = _jump(connection, self._sequence, self._many)
            drawn = np.arange(first, first + self._many)
        except LockNotAvailable:
            drawn = one_by_one(connection, self._sequence.name, self._some)
        self._left = np.concatenate([self._left, drawn])


def _jump(connection: psycopg.Connection[Any], sequence: Sequence, count: int) -> int:
    jump = _SQL["jump"].sql(
        sequence=SQL(sequence.name),
        owner=SQL(sequence.owner),
        name=Literal(sequence.name),
        count=Literal(count),
    )
    cursor = connection.execute(jump)
    while cursor.nextset():
        pass
    (first,) = cursor.fetchall()
    return int(first[0])


def one_by_one(connection: psycopg.Connection[Any], sequence: str, count: int) -> Numbers:
    """Draw as any INSERT does."""
    row = connection.execute(_SQL["draw"].text, (sequence, count), binary=True).fetchone()
    assert row is not None  # noqa: S101 - it is an aggregate
    return np.frombuffer(row[0], ">i8").astype(np.int64)
