"""The ways to stash: each opens what a program would have open, and tells how to use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, TypeAlias, cast

import psycopg
import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from benchmarks.stash import VALUE
from harvest_dagster import Message, astash, stash

Messages: TypeAlias = "Message | Iterable[Message]"
Opened: TypeAlias = "tuple[Callable[[], AbstractContextManager[Any]], Callable[[Messages], object]]"
AsyncOpened: TypeAlias = (
    "tuple[Callable[[], AbstractAsyncContextManager[Any]], Callable[[Messages], Awaitable[object]]]"
)
Way: TypeAlias = "Callable[[str], AbstractContextManager[Opened]]"
AsyncWay: TypeAlias = "Callable[[str], AbstractAsyncContextManager[AsyncOpened]]"


def message(number: int) -> Message:
    """What is stashed."""
    return Message("orders", str(number % 1000), VALUE, {"trace": b"ab12"})


def messages(count: int) -> Iterator[Message]:
    """Tell so many."""
    return (message(number) for number in range(count))


@contextmanager
def _psycopg(url: str) -> Iterator[Opened]:
    with psycopg.connect(url) as connection:
        yield connection.transaction, lambda each: stash(connection, each)


@contextmanager
def _sqlalchemy(url: str) -> Iterator[Opened]:
    engine = sa.create_engine(_by(url, "psycopg"))
    with Session(engine) as session:
        yield session.begin, lambda each: stash(session, each)
    engine.dispose()


@contextmanager
def sql_function(url: str) -> Iterator[Opened]:
    """Call what other languages call."""
    query = "SELECT harvest.stash('orders', %s::text, %s::bytea, %s)"

    def call(each: Messages) -> None:
        one = cast("Message", each)
        connection.execute(query, [one.key, one.value, Jsonb({"trace": "ab12"})])

    with psycopg.connect(url) as connection:
        yield connection.transaction, call


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[AsyncOpened]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection.transaction, lambda each: astash(connection, each)


def _sqlalchemy_async(driver: str) -> AsyncWay:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[AsyncOpened]:
        engine = create_async_engine(_by(url, driver))
        async with AsyncSession(engine) as session:
            yield session.begin, lambda each: astash(session, each)
        await engine.dispose()

    return opened


def _by(url: str, driver: str) -> sa.URL:
    return sa.make_url(url).set(drivername=f"postgresql+{driver}")


SYNC: dict[str, Way] = {"psycopg": _psycopg, "SQLAlchemy": _sqlalchemy}
ASYNC: dict[str, AsyncWay] = {
    "psycopg, async": _psycopg_async,
    "SQLAlchemy, async psycopg": _sqlalchemy_async("psycopg"),
    "SQLAlchemy, asyncpg": _sqlalchemy_async("asyncpg"),
}
