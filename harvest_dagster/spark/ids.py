"""The ids of a large task, drawn from the outbox's sequence many at once.

To draw an id for each row is a quarter of what a COPY and its index cost PostgreSQL. A sequence
gives one id at a time; but it can be set to a later number while nobody else draws:

    queue    behind others who want to do the same
    hold     the lock of ALTER SEQUENCE, for which all who draw wait
    jump     over as many ids as are wanted, which are then ours

All of it goes to PostgreSQL in one message, so the lock is released even if we die meanwhile.
Whoever has drawn an id holds the sequence until their transaction ends. While we waited for that,
all who draw would wait behind us. So we give up after a millisecond, and draw the ids one by one,
which waits for nobody. Ids that a task does not use are lost.

It runs on the task's thread, and blocks on PostgreSQL alone.
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
"""So many ids are drawn by a jump."""
SOME = 50_000
"""So many are drawn where a jump can't be had."""

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class IdSequence:
    """The sequence of a table's ids, and its owner, both quoted as SQL wants them."""

    name: str
    owner: str


def sequence_of(connection: psycopg.Connection[Any], table: TableName) -> IdSequence | None:
    """Return the sequence of a table's ids, or None if many can't be drawn from it at once."""
    row = connection.execute(_SQL["sequence"].text, (table.sql,)).fetchone()
    return IdSequence(*row) if row else None


class DrawnIds:
    """Ids of one sequence, each larger than all that were taken before it."""

    def __init__(self, url: str, sequence: IdSequence, many: int = MANY, some: int = SOME) -> None:
        self._url, self._sequence, self._many, self._some = url, sequence, many, some
        self._left: Numbers = np.empty(0, np.int64)

    def take(self, count: int) -> Numbers:
        """Return the next ids; draw more over a connection of its own if there are too few."""
        while len(self._left) < count:
            with connect(self._url) as connection:
                self.draw(connection)
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def draw(self, connection: psycopg.Connection[Any]) -> int:
        """Draw more ids, for `take`; return how many."""
        try:
            first = _jump(connection, self._sequence, self._many)
            drawn = np.arange(first, first + self._many)
        except LockNotAvailable:
            drawn = _one_by_one(connection, self._sequence.name, self._some)
        self._left = np.concatenate([self._left, drawn])
        return len(drawn)


def _jump(connection: psycopg.Connection[Any], sequence: IdSequence, count: int) -> int:
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


def _one_by_one(connection: psycopg.Connection[Any], sequence: str, count: int) -> Numbers:
    """Return ids that are drawn as any INSERT draws them."""
    row = connection.execute(_SQL["draw"].text, (sequence, count), binary=True).fetchone()
    assert row is not None  # noqa: S101 - it is an aggregate
    return np.frombuffer(row[0], ">i8").astype(np.int64)
