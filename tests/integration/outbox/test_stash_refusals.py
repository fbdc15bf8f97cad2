from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from harvest_dagster import Message, MessageError, OutboxError, TransactionError, astash, stash

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.ways import Way

GOOD = Message("orders", "7", "v")
TOO_LARGE = Message("orders", "7", b"v" * 1_048_588)


def bad_half_way(bad: Any) -> Iterator[Any]:
    """More good messages than one batch takes, and then a bad one, and good ones again."""
    yield from [GOOD] * 1500
    yield bad
    yield from [GOOD] * 10


def failing() -> Iterator[Message]:
    """More messages than one batch takes, and then an error."""
    yield from [GOOD] * 1500
    raise LookupError


@pytest.mark.parametrize("ids", [False, True])
async def test_bad_message_half_way(way: Way, ids: bool, stashed: Stashed) -> None:
    """Of messages with a bad one among them none is stashed, even if the caller commits then."""
    with pytest.raises(MessageError, match=r"value: b'vvv.* which makes the message 1,048,669"):
        await way.put(bad_half_way(TOO_LARGE), ids=ids)
    await way.commit()
    assert stashed() == []


@pytest.mark.parametrize("ids", [False, True])
async def test_iterator_that_fails(way: Way, ids: bool, stashed: Stashed) -> None:
    """An iterator's own error comes through, and none of its messages is stashed."""
    with pytest.raises(LookupError):
        await way.put(failing(), ids=ids)
    await way.commit()
    assert stashed() == []


async def test_not_a_message(way: Way) -> None:
    """What is no Message is refused with its place among the others."""
    with pytest.raises(
        MessageError, match=r"number 3, {'topic': 't'}, is an object \(dict\); give Message"
    ):
        await way.put([GOOD, GOOD, {"topic": "t"}])


async def test_not_a_message_but_a_tuple(way: Way) -> None:
    """A tuple of fields, which is no Message, is refused field by field."""
    with pytest.raises(MessageError, match="number 1, 'orders', is text"):
        await way.put(("orders", "7", "v"))


async def test_missing_table(way: Way) -> None:
    """A table that is not there is an error that says how to make it."""
    with pytest.raises(OutboxError, match="no table nowhere: make it with `harvest outbox create"):
        await way.put(GOOD, outbox="nowhere")


async def test_no_outbox(way: Way, connection: psycopg.Connection[Any]) -> None:
    """A table that is no outbox is an error that names what it lacks."""
    connection.execute("ALTER TABLE outbox DROP kafka_key")
    connection.commit()
    with pytest.raises(OutboxError, match="outbox is no outbox, it lacks kafka_key"):
        await way.put(GOOD)


async def test_refused_message_leaves_the_transaction(way: Way, stashed: Stashed) -> None:
    """One message that is refused before it is sent leaves the caller's transaction as it was."""
    await way.put(GOOD)
    with pytest.raises(MessageError, match="value: "):
        await way.put(TOO_LARGE)
    await way.commit()
    assert stashed() == [GOOD]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.parametrize("messages", [GOOD, [GOOD]], ids=["one", "many"])
def test_autocommit_of_sqlalchemy(database: str, driver: str, messages: Any) -> None:
    """A SQLAlchemy connection in autocommit is refused, as no transaction would hold the stash."""
    url = sa.make_url(database).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(TransactionError, match="in autocommit"):
        stash(connection, messages)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("messages", [GOOD, [GOOD]], ids=["one", "many"])
async def test_autocommit_of_async_sqlalchemy(database: str, driver: str, messages: Any) -> None:
    """An asynchronous SQLAlchemy connection in autocommit is refused likewise."""
    url = sa.make_url(database).set(drivername=f"postgresql+{driver}")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(TransactionError, match="in autocommit"):
            await astash(connection, messages)
    await engine.dispose()


def test_autocommit_of_psycopg(database: str, stashed: Stashed) -> None:
    """A psycopg connection in autocommit is refused, and nothing is stashed."""
    with psycopg.connect(database, autocommit=True) as connection:
        for messages in (GOOD, [GOOD]):
            with pytest.raises(TransactionError, match=r"with connection\.transaction\(\):"):
                stash(connection, messages)
    assert stashed() == []


async def test_autocommit_of_async_psycopg(database: str) -> None:
    """An asynchronous psycopg connection in autocommit is refused likewise."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        with pytest.raises(TransactionError, match="in autocommit"):
            await astash(connection, GOOD)


def test_transaction_within_autocommit(database: str, stashed: Stashed) -> None:
    """A transaction begun on a psycopg connection in autocommit is as good as any."""
    with psycopg.connect(database, autocommit=True) as connection:
        with connection.transaction():
            stash(connection, [GOOD])
        assert stashed() == [GOOD]


@pytest.mark.parametrize("target", [None, "postgresql://localhost", sa.create_engine("sqlite://")])
async def test_no_target(target: Any) -> None:
    """What no transaction runs on is refused, with what stash takes."""
    with pytest.raises(TransactionError, match=r"stash needs your transaction, and .+ Session"):
        stash(target, GOOD)
    with pytest.raises(TransactionError, match="astash needs your transaction"):
        await astash(target, GOOD)


async def test_stash_on_asynchronous_target(async_way: Way) -> None:
    """A target that must be awaited is refused by the stash that can't."""
    with pytest.raises(TransactionError, match="stash needs your transaction"):
        stash(async_way.target, GOOD)
