"""Stash over psycopg 3: one message by INSERT, many by binary COPY.

Called on the caller's thread, in the caller's transaction; it blocks as long as the database does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from harvest_dagster.errors import MessageError, TransactionError
from harvest_dagster.outbox.plan import (
    COLUMNS,
    NOW,
    RETURNING_BATCH,
    STASH,
    Plan,
    checked,
    forget_plans,
    in_batches,
    make_plan,
    plan_of,
)
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import binary_time
from harvest_dagster.outbox.table import Outbox


def refuse_autocommit(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Refuse a connection on which each statement would commit by itself."""
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise TransactionError(
            "stash needs your transaction, and this connection is in autocommit: begin one, for"
            " example `with connection.transaction():`, around your writes and the stash"
        )


def can_copy(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Tell whether many may go by COPY: not in a pipeline, and only where texts are UTF-8.

    Its texts are sent as UTF-8, which PostgreSQL would take for the connection's own encoding.
    """
    is_pipeline = connection.pgconn.pipeline_status != PipelineStatus.OFF
    return not is_pipeline and connection.info.encoding == "utf-8"


def stash(
    connection: psycopg.Connection[Any],
    messages: Message | Iterable[Message],
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    """Stash one message or many."""
    refuse_autocommit(connection)
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        try:
            plan = plan_of(connection, outbox) or _look_up(cursor, outbox)
            if isinstance(messages, Message):
                return _insert(cursor, plan, messages, ids=ids)
            stream = checked(messages)
            if ids or not can_copy(connection):
                found = _insert_many(cursor, plan, stream)
                return found if ids else len(found)
            return _copy(cursor, plan, stream)
        except (psycopg.Error, MessageError):
            forget_plans(connection)
            raise


def _look_up(cursor: psycopg.Cursor[TupleRow], outbox: Outbox) -> Plan:
    rows = cursor.execute(COLUMNS, (outbox.table.sql,)).fetchall()
    return make_plan(cursor.connection, outbox, rows)


def _insert(
    cursor: psycopg.Cursor[TupleRow], plan: Plan, message: Message, *, ids: bool
) -> int | list[int]:
    row = plan.encoder.insert_row(message)
    if not ids:
        cursor.execute(plan.insert, row)
        return 1
    return [found for (found,) in cursor.execute(plan.returning, row)]


def _insert_many(
    cursor: psycopg.Cursor[TupleRow], plan: Plan, messages: Iterator[Message]
) -> list[int]:
    ids: list[int] = []
    with _all_or_none(cursor.connection):
        for batch in in_batches(messages, RETURNING_BATCH):
            rows = [plan.encoder.insert_row(message) for message in batch]
            cursor.executemany(plan.returning, rows, returning=True)
            ids.extend(found for result in cursor.results() for (found,) in result)
    return ids


@contextmanager
def _all_or_none(connection: psycopg.Connection[Any]) -> Iterator[None]:
    connection.execute(STASH["savepoint"].text)
    try:
        yield
    except psycopg.Error:  # which has undone the whole transaction
        raise
    except BaseException:
        connection.execute(STASH["undo"].text)
        raise
    connection.execute(STASH["keep"].text)


def _copy(cursor: psycopg.Cursor[TupleRow], plan: Plan, messages: Iterator[Message]) -> int:
    first = next(messages, None)
    if first is None:
        return 0
    time = _now(cursor) if plan.encoder.wants_time else None
    encode, count = plan.encoder.copy_row, 0
    with cursor.copy(plan.copy) as copy:
        for message in chain((first,), messages):
            copy.write_row(encode(message, time))
            count += 1
    return count


def _now(cursor: psycopg.Cursor[TupleRow]) -> bytes:
    row = cursor.execute(NOW).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return binary_time(row[0])
