"""Stash over psycopg 3: one message by INSERT, many by binary COPY.

It runs where the caller does, in the caller's transaction, and waits as long as the database does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import cast

import psycopg
from psycopg.pq import PipelineStatus

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import binary_time
from harvest_dagster.outbox.stash_plan import STASH, StashPlan, forget_plans, make_plan, plan_of
from harvest_dagster.outbox.stash_stream import BATCH, Stream, taken
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.postgres.target import PsycopgConnection, PsycopgCursor, cursor_on, rows
from harvest_dagster.postgres.twin import done, result_of


async def stash(
    connection: PsycopgConnection, messages: Message | Stream, outbox: Outbox, *, ids: bool
) -> int | list[int]:
    """Stash one message or many."""
    cursor = cursor_on(connection)
    try:
        plan = plan_of(connection, outbox) or await make_plan(connection, connection, outbox)
        if isinstance(messages, Message):
            row = plan.encoder.insert_row(messages)
            await done(cursor.execute(plan.returning if ids else plan.insert, row))
            return await _ids(cursor) if ids else 1
        if ids or not _can_copy(connection):
            found = await _insert_many(cursor, plan, messages)
            return found if ids else len(found)
        return await _copy(cursor, plan, messages)
    except (psycopg.Error, MessageError):
        forget_plans(connection)
        raise


def _can_copy(connection: PsycopgConnection) -> bool:
    """Return whether many may go by COPY: not in a pipeline, and only where texts are UTF-8.

    Its texts are sent as UTF-8, which PostgreSQL would take for the connection's own encoding.
    """
    is_pipeline = connection.pgconn.pipeline_status != PipelineStatus.OFF
    return not is_pipeline and connection.info.encoding == "utf-8"


async def _ids(cursor: PsycopgCursor) -> list[int]:
    return [found for (found,) in await result_of(cursor.fetchall())]


async def _insert_many(cursor: PsycopgCursor, plan: StashPlan, messages: Stream) -> list[int]:
    ids: list[int] = []
    async with _all_or_none(cursor.connection):
        while batch := await taken(messages, BATCH):
            inserts = [plan.encoder.insert_row(message) for message in batch]
            await done(cursor.executemany(plan.returning, inserts, returning=True))
            ids += await _ids(cursor)
            while cursor.nextset():
                ids += await _ids(cursor)
    return ids


@asynccontextmanager
async def _all_or_none(connection: PsycopgConnection) -> AsyncIterator[None]:
    await done(connection.execute(STASH["savepoint"].text))
    try:
        yield
    except psycopg.Error:  # which has undone the whole transaction
        raise
    except BaseException:
        await done(connection.execute(STASH["undo"].text))
        raise
    await done(connection.execute(STASH["keep"].text))


async def _copy(cursor: PsycopgCursor, plan: StashPlan, messages: Stream) -> int:
    first = await taken(messages, 1)
    if not first:
        return 0
    time = await _now(cursor.connection) if plan.encoder.wants_time else None
    encode, count = plan.encoder.copy_row, 0
    # The one loop that stands twice: millions go through it, and awaiting each would be felt.
    if isinstance(cursor, psycopg.Cursor):
        with cursor.copy(plan.copy) as copy:
            for message in chain(first, cast("Iterator[Message]", messages)):
                copy.write_row(encode(message, time))
                count += 1
        return count
    async with cursor.copy(plan.copy) as acopy:
        await acopy.write_row(encode(first[0], time))
        async for message in cast("AsyncIterator[Message]", messages):
            await acopy.write_row(encode(message, time))
            count += 1
    return count + 1


async def _now(connection: PsycopgConnection) -> bytes:
    [(now,)] = await rows(connection, STASH["now"].text)
    return binary_time(now)
