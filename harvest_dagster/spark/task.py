"""What a task does: it copies its batches into a staging table, in a transaction of its own.

If the write's table may be attached, a task of many messages makes a table of its own, in the
transaction that fills it. Tasks that fill one table and its index wait for each other most of the
time. And PostgreSQL can freeze rows in a table that nobody else has seen: it need not note later
that they were committed, which with checksums would log as much again as the rows.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Composed, Identifier

from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.binary import HEAD, SLICE_BYTES, TAIL, copy_rows, fixed, slices
from harvest_dagster.spark.ids import DrawnIds, sequence_of
from harvest_dagster.spark.source_options import ATTACH_FROM
from harvest_dagster.spark.staging import Staged, Staging, connect, ensure_index, is_part

_SQL = statements("harvest_dagster.spark", "task.sql")
_ATTEMPT_BITS = 63
_MOST_OWN = 64
"""At most so many tasks of a write have tables of their own: the leader has to look into each."""
_USUAL_BYTES = SLICE_BYTES // ATTACH_FROM
"""Larger messages count as several, since a task holds them until it knows that it is large."""

Encode = Callable[[pa.RecordBatch], Sequence[pa.Array]]


def copy(
    url: str,
    staging: Staging,
    batches: Iterable[pa.RecordBatch],
    encode: Encode,
    attach_from: int | None = None,
    most_own: int = _MOST_OWN,
) -> Staged:
    """Copy a task's batches, all or none, and return what was staged.

    The attempt has a random number, which no other attempt has.
    """
    attempt, rest = secrets.randbits(_ATTEMPT_BITS), iter(batches)
    first, is_large = _begin(rest, attach_from)
    with connect(url) as connection:
        ids = _begin_ids(connection, staging, url) if is_large else None
        with connection.transaction():
            own = _create_own(connection, staging, attempt, most_own) if is_large else None
            if own is None:
                rows = _copy_shared(connection, staging, chain(first, rest), encode, attempt)
            else:
                rows = _copy_own(connection, own, chain(first, rest), encode, ids)
            shared = 0 if own else rows
            connection.execute(_SQL["copied"].text, (shared, staging.name))
    return Staged(attempt, rows, own.name if own else None)


def _begin(
    batches: Iterator[pa.RecordBatch], attach_from: int | None
) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first batches, and whether there are many messages.

    Batches are taken until that is known, or they are too large to hold more of them.
    """
    first: list[pa.RecordBatch] = []
    rows = size = 0
    while attach_from is not None and size < SLICE_BYTES:
        batch = next(batches, None)
        if batch is None:
            break
        first.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= attach_from or size >= attach_from * _USUAL_BYTES:
            return first, True
    return first, False


def _begin_ids(connection: psycopg.Connection[Any], staging: Staging, url: str) -> DrawnIds | None:
    """Draw the first ids now, since in the task's transaction that would hold the sequence."""
    sequence = sequence_of(connection, staging.table)
    if sequence is None:
        return None
    ids = DrawnIds(url, sequence)
    ids.draw(connection)
    return ids


def _create_own(
    connection: psycopg.Connection[Any], staging: Staging, attempt: int, most: int
) -> Staging | None:
    """Create and return a large task's table; return None if the task must share the write's."""
    own = replace(staging, name=f"{staging.name}_{attempt:016x}")
    if not is_part(connection, staging):
        return None
    names = {"own": own.name, "name": staging.name, "most": most}
    if connection.execute(_SQL["register_own"].text, names).rowcount == 0:
        return None
    connection.execute(_SQL["create_own"].sql(own=own.table, staging=staging.table))
    return own


def _copy_shared(
    connection: psycopg.Connection[Any],
    staging: Staging,
    batches: Iterable[pa.RecordBatch],
    encode: Encode,
    attempt: int,
) -> int:
    """Copy into the table of all tasks, the attempt's number in each row; return how many rows."""
    first = struct.pack("!q", attempt)
    statement = _SQL["copy"].sql(staging=staging.table, columns=_names(staging))
    return _copy(connection, statement, batches, lambda part: copy_rows(encode(part), first))


def _copy_own(
    connection: psycopg.Connection[Any],
    own: Staging,
    batches: Iterable[pa.RecordBatch],
    encode: Encode,
    ids: DrawnIds | None,
) -> int:
    """Copy into a task's own table, and index it; return how many rows."""
    columns = _names(own)
    if ids is not None:
        columns = SQL("id, {}").format(columns)

    def rows_of(part: pa.RecordBatch) -> pa.Buffer:
        numbers = [] if ids is None else [fixed(ids.take(part.num_rows), ">i8")]
        return copy_rows([*numbers, *encode(part)])

    statement = _SQL["copy_own"].sql(staging=own.table, columns=columns)
    rows = _copy(connection, statement, batches, rows_of)
    connection.execute(_SQL["alone"].text)
    ensure_index(connection, own.table)
    return rows


def _names(staging: Staging) -> Composed:
    return SQL(", ").join(Identifier(column.name) for column in staging.columns)


def _copy(
    connection: psycopg.Connection[Any],
    statement: Composed,
    batches: Iterable[pa.RecordBatch],
    rows_of: Callable[[pa.RecordBatch], pa.Buffer],
) -> int:
    rows = 0
    with connection.cursor().copy(statement) as into:
        into.write(HEAD)
        for batch in batches:
            for part in slices(batch):
                into.write(memoryview(rows_of(part)))
                rows += part.num_rows
        into.write(TAIL)
    return rows
