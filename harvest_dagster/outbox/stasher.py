"""Stash: put messages into the outbox inside the caller's own transaction.

It never commits and never begins: what the caller's transaction does to the caller's rows, it does
to the messages. `stash` may be called on any thread and blocks as long as the database does;
`astash` is awaited on the caller's event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import psycopg

from harvest_dagster.config import DEFAULT_OUTBOX
from harvest_dagster.outbox import stash_psycopg, stash_psycopg_async
from harvest_dagster.outbox.plan import check, checked
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.table import Outbox

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

Target: TypeAlias = (
    "Session | scoped_session[Any] | Connection | psycopg.Connection[Any] | psycopg.Cursor[Any]"
)
AsyncTarget: TypeAlias = (
    "AsyncSession | async_scoped_session[Any] | AsyncConnection"
    " | psycopg.AsyncConnection[Any] | psycopg.AsyncCursor[Any]"
)
Messages: TypeAlias = "Message | Iterable[Message]"
AsyncMessages: TypeAlias = "Message | Iterable[Message] | AsyncIterable[Message]"


@overload
def stash(
    target: Target, messages: Messages, *, outbox: Outbox | str = ..., ids: Literal[False] = ...
) -> int: ...
@overload
def stash(
    target: Target, messages: Messages, *, outbox: Outbox | str = ..., ids: Literal[True]
) -> list[int]: ...
@overload
def stash(
    target: Target, messages: Messages, *, outbox: Outbox | str = ..., ids: bool
) -> int | list[int]: ...
def stash(
    target: Target, messages: Messages, *, outbox: Outbox | str = DEFAULT_OUTBOX, ids: bool = False
) -> int | list[int]:
    """Stash one message or many; tell how many, or with `ids` their ids in order.

    `target` is what the caller's transaction runs on: a SQLAlchemy Session or Connection, a psycopg
    connection or cursor. Many go through COPY in constant memory, so an iterable may yield
    millions; with `ids` they go through INSERT, which is slower.
    """
    place = outbox if isinstance(outbox, Outbox) else Outbox.named(outbox)
    if isinstance(target, psycopg.Cursor):
        target = target.connection
    if isinstance(target, psycopg.Connection):
        return stash_psycopg.stash(target, messages, place, ids=ids)
    # SQLAlchemy takes a second to import: only who uses it waits for that.
    from harvest_dagster.outbox import stash_sqlalchemy  # noqa: PLC0415

    return stash_sqlalchemy.stash(target, messages, place, ids=ids)


@overload
async def astash(
    target: AsyncTarget,
    messages: AsyncMessages,
    *,
    outbox: Outbox | str = ...,
    ids: Literal[False] = ...,
) -> int: ...
@overload
async def astash(
    target: AsyncTarget,
    messages: AsyncMessages,
    *,
    outbox: Outbox | str = ...,
    ids: Literal[True],
) -> list[int]: ...
@overload
async def astash(
    target: AsyncTarget, messages: AsyncMessages, *, outbox: Outbox | str = ..., ids: bool
) -> int | list[int]: ...
async def astash(
    target: AsyncTarget,
    messages: AsyncMessages,
    *,
    outbox: Outbox | str = DEFAULT_OUTBOX,
    ids: bool = False,
) -> int | list[int]:
    """Stash as `stash` does; the messages may also come from an asynchronous iterable."""
    place = outbox if isinstance(outbox, Outbox) else Outbox.named(outbox)
    if isinstance(target, psycopg.AsyncCursor):
        target = target.connection
    several = messages if isinstance(messages, Message) else _stream(messages)
    if isinstance(target, psycopg.AsyncConnection):
        return await stash_psycopg_async.stash(target, several, place, ids=ids)
    from harvest_dagster.outbox import stash_sqlalchemy  # noqa: PLC0415 - as in `stash`

    return await stash_sqlalchemy.astash(target, several, place, ids=ids)


async def _stream(messages: Iterable[Message] | AsyncIterable[Message]) -> AsyncIterator[Message]:
    if isinstance(messages, AsyncIterable):
        place = 0
        async for message in messages:
            place += 1
            yield check(message, place)
        return
    for message in checked(messages):
        yield message
