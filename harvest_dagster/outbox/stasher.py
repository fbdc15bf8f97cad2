"""Stash: put messages into the outbox inside the caller's own transaction.

It never commits and never begins: what the caller's transaction does to the caller's rows, it does
to the messages. `stash` may be called on any thread and blocks as long as the database does;
`astash` is awaited on the caller's event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Coroutine, Iterable
from typing import Any, Literal, TypeAlias, overload

import psycopg

from harvest_dagster.config import DEFAULT_OUTBOX
from harvest_dagster.outbox import stash_psycopg
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.stash_stream import Stream, achecked, checked
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.postgres.target import AsyncTarget, Joined, Target, ajoin, join
from harvest_dagster.postgres.twin import run

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
    """Stash one message or many; return how many, or with `ids` their ids in order.

    `target` is what the caller's transaction runs on: a SQLAlchemy Session or Connection, a psycopg
    connection or cursor. Many go through COPY in constant memory, so an iterable may yield
    millions; with `ids` they go through INSERT, which is slower.
    """
    place = _place(outbox)
    given = messages if isinstance(messages, Message) else checked(messages)
    return run(_stash(join(target, "stash"), given, place, ids=ids))


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
    place = _place(outbox)
    given = messages if isinstance(messages, Message) else achecked(messages)
    return await _stash(await ajoin(target, "astash"), given, place, ids=ids)


def _place(outbox: Outbox | str) -> Outbox:
    return outbox if isinstance(outbox, Outbox) else Outbox.named(outbox)


def _stash(
    connection: Joined, messages: Message | Stream, outbox: Outbox, *, ids: bool
) -> Coroutine[Any, Any, int | list[int]]:
    if isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        return stash_psycopg.stash(connection, messages, outbox, ids=ids)
    # SQLAlchemy takes a second to import: only who uses it waits for that.
    from harvest_dagster.outbox import stash_sqlalchemy  # noqa: PLC0415

    return stash_sqlalchemy.stash(connection, messages, outbox, ids=ids)
