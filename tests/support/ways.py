"""Every kind of target that stash takes, behind one face, so that a test is said once for all."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from harvest_dagster.outbox import astash, stash


@dataclass(frozen=True)
class Way:
    """A target, and the object whose transaction it is in."""

    target: Any
    owner: Any

    @property
    def is_awaited(self) -> bool:
        """Whether its calls are awaited."""
        return isinstance(self.owner, AsyncSession | AsyncConnection | psycopg.AsyncConnection)

    async def put(self, messages: Any, **options: Any) -> Any:
        """Stash on the target."""
        call = astash if self.is_awaited else stash
        return await _settled(call(self.target, messages, **options))

    async def commit(self) -> None:
        """End the caller's transaction."""
        await _settled(self.owner.commit())

    async def rollback(self) -> None:
        """Throw the caller's transaction away."""
        await _settled(self.owner.rollback())

    async def put_and_undo(self, messages: Any, **options: Any) -> None:
        """Stash in a savepoint, and go back to it."""
        if isinstance(self.owner, psycopg.Connection):
            with self.owner.transaction(force_rollback=True):
                await self.put(messages, **options)
        elif isinstance(self.owner, psycopg.AsyncConnection):
            async with self.owner.transaction(force_rollback=True):
                await self.put(messages, **options)
        else:
            savepoint = await _settled(self.owner.begin_nested())
            await self.put(messages, **options)
            await _settled(savepoint.rollback())


async def _settled(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


@asynccontextmanager
async def _session(url: str, driver: str) -> AsyncIterator[Way]:
    engine = sa.create_engine(_with_driver(url, driver))
    with Session(engine) as session:
        yield Way(session, session)
    engine.dispose()


@asynccontextmanager
async def _scoped_session(url: str, driver: str) -> AsyncIterator[Way]:
    engine = sa.create_engine(_with_driver(url, driver))
    session = scoped_session(sessionmaker(engine))
    yield Way(session, session)
    session.remove()
    engine.dispose()


@asynccontextmanager
async def _connection(url: str, driver: str) -> AsyncIterator[Way]:
    engine = sa.create_engine(_with_driver(url, driver))
    with engine.connect() as connection:
        yield Way(connection, connection)
    engine.dispose()


@asynccontextmanager
async def _async_session(url: str, driver: str) -> AsyncIterator[Way]:
    engine = create_async_engine(_with_driver(url, driver))
    async with AsyncSession(engine) as session:
        yield Way(session, session)
    await engine.dispose()


@asynccontextmanager
async def _async_connection(url: str, driver: str) -> AsyncIterator[Way]:
    engine = create_async_engine(_with_driver(url, driver))
    async with engine.connect() as connection:
        yield Way(connection, connection)
    await engine.dispose()


@asynccontextmanager
async def _psycopg(url: str, kind: str) -> AsyncIterator[Way]:
    with psycopg.connect(url) as connection:
        yield Way(connection if kind == "connection" else connection.cursor(), connection)


@asynccontextmanager
async def _async_psycopg(url: str, kind: str) -> AsyncIterator[Way]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Way(connection if kind == "connection" else connection.cursor(), connection)


Opener = Callable[[str, str], AbstractAsyncContextManager[Way]]

WAYS: dict[str, tuple[Opener, str]] = {
    "Session psycopg": (_session, "psycopg"),
    "Session psycopg2": (_session, "psycopg2"),
    "scoped_session psycopg": (_scoped_session, "psycopg"),
    "Connection psycopg": (_connection, "psycopg"),
    "Connection psycopg2": (_connection, "psycopg2"),
    "AsyncSession psycopg": (_async_session, "psycopg"),
    "AsyncSession asyncpg": (_async_session, "asyncpg"),
    "AsyncConnection psycopg": (_async_connection, "psycopg"),
    "AsyncConnection asyncpg": (_async_connection, "asyncpg"),
    "psycopg Connection": (_psycopg, "connection"),
    "psycopg Cursor": (_psycopg, "cursor"),
    "psycopg AsyncConnection": (_async_psycopg, "connection"),
    "psycopg AsyncCursor": (_async_psycopg, "cursor"),
}


@pytest.fixture(params=[name for name in WAYS if "Async" in name])
async def async_way(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Way]:
    """Each kind of target on which stash is awaited."""
    opener, kind = WAYS[request.param]
    async with opener(database, kind) as opened:
        yield opened


@pytest.fixture(params=WAYS)
async def way(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Way]:
    """Each kind of target in turn, open and outside of any transaction."""
    opener, kind = WAYS[request.param]
    async with opener(database, kind) as opened:
        yield opened


def _with_driver(url: str, driver: str) -> sa.URL:
    return sa.make_url(url).set(drivername=f"postgresql+{driver}")
