"""Stash over asynchronous psycopg 3: what `stash_psycopg` does, on the caller's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import TupleRow, tuple_row

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.plan import (
    COLUMNS,
    NOW,
    RETURNING_BATCH,
    STASH,
    Plan,
    ain_batches,
    forget_plans,
    make_plan,
    plan_of,
)
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import binary_time
from harvest_dagster.outbox.stash_psycopg import can_copy, refuse_autocommit
from harvest_dagster.outbox.table import Outbox


async def stash(
    connection: psycopg.AsyncConnection[Any],
    messages: Message | AsyncIterator[Message],
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    """Stash one message or many."""
    refuse_autocommit(connection)
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        try:
            plan = plan_of(connection, outbox) or await _look_up(cursor, outbox)
            if isinstance(messages, Message):
                return await _insert(cursor, plan, messages, ids=ids)
            if ids or not can_copy(connection):
                found = await _insert_many(cursor, plan, messages)
                return found if ids else len(found)
            return await _copy(cursor, plan, messages)
        except (psycopg.Error, MessageError):
            forget_plans(connection)
            raise


async def _look_up(cursor: psycopg.AsyncCursor[TupleRow], outbox: Outbox) -> Plan:
    await cursor.execute(COLUMNS, (outbox.table.sql,))
    return make_plan(cursor.connection, outbox, await cursor.fetchall())


async def _insert(
    cursor: psycopg.AsyncCursor[TupleRow], plan: Plan, message: Message, *, ids: bool
) -> int | list[int]:
    row = plan.encoder.insert_row(message)
    if not ids:
        await cursor.execute(plan.insert, row)
        return 1
    await cursor.execute(plan.returning, row)
    return [found for (found,) in await cursor.fetchall()]


async def _insert_many(
    cursor: psycopg.AsyncCursor[TupleRow], plan: Plan, messages: AsyncIterator[Message]
) -> list[int]:
    ids: list[int] = []
    async with _all_or_none(cursor.connection):
        async for batch in ain_batches(messages, RETURNING_BATCH):
            rows = [plan.encoder.insert_row(message) for message in batch]
            await cursor.executemany(plan.returning, rows, returning=True)
            async for result in cursor.results():
                ids.extend(found for (found,) in await result.fetchall())
    return ids


@asynccontextmanager
async def _all_or_none(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    await connection.execute(STASH["savepoint"].text)
    try:
        yield
    except psycopg.Error:  # which has undone the whole transaction
        raise
    except BaseException:
        await connection.execute(STASH["undo"].text)
        raise
    await connection.execute(STASH["keep"].text)


async def _copy(
    cursor: psycopg.AsyncCursor[TupleRow], plan: Plan, messages: AsyncIterator[Message]
) -> int:
    first = await anext(messages, None)
    if first is None:
        return 0
    time = await _now(cursor) if plan.encoder.wants_time else None
    encode, count = plan.encoder.copy_row, 1
    async with cursor.copy(plan.copy) as copy:
        await copy.write_row(encode(first, time))
        async for message in messages:
            await copy.write_row(encode(message, time))
            count += 1
    return count


async def _now(cursor: psycopg.AsyncCursor[TupleRow]) -> bytes:
    await cursor.execute(NOW)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return binary_time(row[0])
