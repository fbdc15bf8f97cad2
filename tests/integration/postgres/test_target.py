from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from harvest_dagster import Message, TransactionError, stash
from harvest_dagster.postgres.target import (
    AsyncTarget,
    Joined,
    Target,
    ajoin,
    join,
    rows,
)
from harvest_dagster.postgres.twin import run

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.ways import Way

ADD = """
    INSERT INTO note (words) VALUES ('50%% at 10:30, ' || %(words)s::text)
    RETURNING id::int, words, %(words)s::text
"""


def add(target: Target, words: str) -> tuple[Any, ...]:
    """Add a note in the caller's transaction: what any room does that joins one."""
    return run(_add(join(target, "note.add"), words))


async def aadd(target: AsyncTarget, words: str) -> tuple[Any, ...]:
    """Add a note likewise, for a caller who awaits."""
    return await _add(await ajoin(target, "note.aadd"), words)


async def _add(connection: Joined, words: str) -> tuple[Any, ...]:
    [row] = await rows(connection, ADD, words=words)
    return row


async def added(way: Way, words: str) -> tuple[Any, ...]:
    """Add a note in the way of the target."""
    return await aadd(way.target, words) if way.is_awaited else add(way.target, words)


@pytest.fixture
def notes(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """A connection of somebody else's, who reads the notes."""
    connection.autocommit = True
    connection.execute("CREATE TABLE note (id serial, words text)")
    return connection


def read(notes: psycopg.Connection[Any]) -> list[str]:
    """Return the words that everybody sees."""
    return [words for (words,) in notes.execute("SELECT words FROM note ORDER BY id")]


async def test_what_is_written_is_the_callers(way: Way, notes: psycopg.Connection[Any]) -> None:
    """A row is seen once the caller commits, and not before; its statement's rows come back."""
    assert await added(way, "one") == (1, "50% at 10:30, one", "one")
    assert read(notes) == []
    await way.commit()
    assert read(notes) == ["50% at 10:30, one"]


async def test_what_is_rolled_back(way: Way, notes: psycopg.Connection[Any]) -> None:
    """A row goes with the caller's transaction, and the next transaction is joined as well."""
    await added(way, "one")
    await way.rollback()
    await added(way, "two")
    await way.commit()
    assert read(notes) == ["50% at 10:30, two"]


async def test_psycopg_is_joined_itself(way: Way, request: pytest.FixtureRequest) -> None:
    """Wherever psycopg is the driver, its own connection is joined, and else SQLAlchemy's."""
    joined = await ajoin(way.target, "v") if way.is_awaited else join(way.target, "v")
    is_psycopg = isinstance(joined, psycopg.Connection | psycopg.AsyncConnection)
    other_drivers = ("psycopg2", "asyncpg")
    assert is_psycopg is not any(driver in request.node.name for driver in other_drivers)


async def test_wrong_kind(way: Way) -> None:
    """Who must await is refused by what blocks, and the other way round, with what to give."""
    name = type(way.target).__name__
    if way.is_awaited:
        with pytest.raises(TransactionError) as refused:
            join(way.target, "note.add")
        kind = ""
    else:
        with pytest.raises(TransactionError) as refused:
            await ajoin(way.target, "note.add")
        kind = "asynchronous "
    assert str(refused.value) == (
        f"note.add needs your transaction, and {name} is not what one runs on: give it SQLAlchemy's"
        f" {kind}Session or Connection, or psycopg's {kind}connection or cursor"
    )


@pytest.mark.parametrize(
    "target", [None, 5, "postgresql://localhost", sa.create_engine("sqlite://")]
)
async def test_no_target(target: Any) -> None:
    """What no transaction runs on is refused in both ways."""
    with pytest.raises(TransactionError, match=r"note\.add needs .* is not what one runs on: give"):
        join(target, "note.add")
    with pytest.raises(TransactionError, match=r"note\.aadd needs .* psycopg's asynchronous conn"):
        await ajoin(target, "note.aadd")


def test_autocommit(database: str) -> None:
    """A connection in autocommit is refused by the name of what was called, until one is begun."""
    with psycopg.connect(database, autocommit=True) as connection:
        with pytest.raises(TransactionError) as refused:
            join(connection.cursor(), "note.add")
        with connection.transaction():
            assert join(connection.cursor(), "note.add") is connection
    assert str(refused.value) == (
        "note.add needs your transaction, and this connection is in autocommit: begin one, for"
        " example `with connection.transaction():`, around your writes and the note.add"
    )


async def test_asynchronous_autocommit(database: str) -> None:
    """An asynchronous connection in autocommit is refused likewise."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        with pytest.raises(TransactionError, match=r"note\.aadd needs .* is in autocommit"):
            await ajoin(connection, "note.aadd")
        async with connection.transaction():
            assert await ajoin(connection.cursor(), "note.aadd") is connection


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_autocommit_of_an_engine(database: str, driver: str) -> None:
    """SQLAlchemy's autocommit is refused, whatever its driver."""
    url = sa.make_url(database).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    refused = pytest.raises(TransactionError, match=r"note\.add needs .* is in autocommit")
    with engine.connect() as connection, refused:
        join(connection, "note.add")
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_autocommit_of_an_asynchronous_engine(database: str, driver: str) -> None:
    """SQLAlchemy's asynchronous autocommit is refused likewise."""
    url = sa.make_url(database).set(drivername=f"postgresql+{driver}")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(TransactionError, match=r"note\.aadd needs .* is in autocommit"):
            await ajoin(connection, "note.aadd")
    await engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_within_run_sync(
    database: str, driver: str, notes: psycopg.Connection[Any], stashed: Stashed
) -> None:
    """In `run_sync` a Session that blocks runs on an asynchronous driver, and is joined too."""
    engine = create_async_engine(sa.make_url(database).set(drivername=f"postgresql+{driver}"))
    messages = [Message("orders", str(number), "") for number in range(3)]
    async with AsyncSession(engine) as session:
        await session.run_sync(add, "one")
        await session.run_sync(stash, messages)
        assert (read(notes), stashed()) == ([], [])
        await session.commit()
    await engine.dispose()
    assert (read(notes), stashed()) == (["50% at 10:30, one"], messages)


@pytest.mark.parametrize(
    "options", [{"row_factory": dict_row}, {"cursor_factory": psycopg.RawCursor}]
)
def test_the_callers_own_make(
    database: str, notes: psycopg.Connection[Any], options: dict[str, Any]
) -> None:
    """However the caller wants rows and statements, ours are ours."""
    with psycopg.connect(database, **options) as connection:
        assert add(connection, "one")[0] == 1
    assert read(notes) == ["50% at 10:30, one"]


def test_sqlalchemy_is_imported_for_its_own(database: str) -> None:
    """Who writes over psycopg does not wait for SQLAlchemy's import, which takes a second."""
    script = (
        "import sys, psycopg; from harvest_dagster import Message, stash;"
        " stash(psycopg.connect(sys.argv[1]), Message('orders', '7', ''));"
        " assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, database], check=True)
