from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.ways import Way

either_table = pytest.mark.parametrize("table", ["outbox", "goharvest_outbox"])

THREE = [
    Message("orders", "7", {"total": 12.5}, [("a", "1"), ("a", None), ("", "")]),
    Message("orders", "", None),
    Message("clicks", 'quo"te\\', "a,b{}\nNULL", {"NULL": "NULL", '"': "\\", "é": " "}),
]
MORE_THAN_A_BATCH = [Message("orders", str(number), "") for number in range(2500)]


async def later(messages: list[Message]) -> AsyncIterator[Message]:
    """The messages from an asynchronous iterator."""
    for message in messages:
        yield message


@either_table
@pytest.mark.parametrize("form", [list, iter], ids=["list", "iterator"])
async def test_many(
    way: Way, table: str, form: Callable[[list[Message]], Any], stashed: Stashed
) -> None:
    """Many messages are stashed as they are, in order, and counted."""
    assert await way.put(form(THREE), outbox=table) == 3
    await way.commit()
    assert stashed(table) == THREE


@either_table
async def test_one(way: Way, table: str, stashed: Stashed) -> None:
    """One message is stashed as it is."""
    assert [await way.put(message, outbox=table) for message in THREE] == [1, 1, 1]
    await way.commit()
    assert stashed(table) == THREE


@pytest.fixture
def latin1(database: str) -> None:
    """Clients are given LATIN1, unless they ask for UTF-8."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f'ALTER DATABASE "{connection.info.dbname}" SET client_encoding = LATIN1'
        )


@either_table
@pytest.mark.parametrize("ids", [False, True])
async def test_other_encodings(
    latin1: None,  # noqa: ARG001 - the way is opened after it
    way: Way,
    table: str,
    ids: bool,
    stashed: Stashed,
) -> None:
    """On a connection whose encoding is not UTF-8, many are stashed as they are, not garbled."""
    accents = [*THREE, Message("orders", "é", "naïve", {"ü": "ß"})]
    await way.put(accents, outbox=table, ids=ids)
    await way.commit()
    assert stashed(table) == accents


@pytest.mark.parametrize("ids", [False, True])
async def test_none(way: Way, ids: bool, stashed: Stashed) -> None:
    """Of no messages none are stashed."""
    assert await way.put(iter([]), ids=ids) == ([] if ids else 0)
    await way.commit()
    assert stashed() == []


@either_table
async def test_ids_of_many(way: Way, table: str, stashed: Stashed) -> None:
    """The ids of many come in the order of the messages, each that of its message."""
    ids = await way.put(MORE_THAN_A_BATCH, outbox=table, ids=True)
    await way.commit()
    assert (ids, stashed(table)) == (sorted(set(ids)), MORE_THAN_A_BATCH)


async def test_ids_of_one(way: Way) -> None:
    """The id of one comes alone, and each is larger than the last."""
    [first], [second] = [await way.put(THREE[0], ids=True) for _ in range(2)]
    assert first < second


async def test_rollback(way: Way, stashed: Stashed) -> None:
    """What the caller rolls back leaves no message, whether one or many, with ids or without."""
    for messages in (THREE[0], THREE):
        await way.put(messages)
        await way.put(messages, ids=True)
    await way.rollback()
    assert stashed() == []


async def test_never_commits(way: Way, stashed: Stashed) -> None:
    """Nobody else sees a message before the caller commits, and everybody does afterwards."""
    await way.put(THREE)
    before = stashed()
    await way.commit()
    assert (before, stashed()) == ([], THREE)


async def test_savepoint(way: Way, stashed: Stashed) -> None:
    """A savepoint that is rolled back takes its messages with it, and no others."""
    await way.put(THREE[0])
    await way.put_and_undo(THREE[1:])
    await way.put(THREE[2])
    await way.commit()
    assert stashed() == [THREE[0], THREE[2]]


@pytest.mark.parametrize("ids", [False, True])
async def test_asynchronous_iterator(
    async_way: Way,
    ids: bool,
    stashed: Stashed,
) -> None:
    """Where stash is awaited, the messages may come from an asynchronous iterator."""
    found = await async_way.put(later(MORE_THAN_A_BATCH), ids=ids)
    await async_way.commit()
    assert (len(found) if ids else found, stashed()) == (2500, MORE_THAN_A_BATCH)
