"""A key that was written is not written again, whoever tries, and however often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any, TypeAlias
from uuid import uuid4

import psycopg
import pytest
from psycopg.errors import DeadlockDetected, SerializationFailure

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.once import (
    Request,
    Written,
    already_written,
    last_written,
    nothing,
    write_once,
)
from harvest_dagster.postgres.names import TableName

Connection: TypeAlias = psycopg.Connection[Any]
OUTBOX = TableName("outbox")
KEYS = "SELECT key FROM harvest.written ORDER BY key"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def request(key: str | Sequence[str] | None = "k", **more: Any) -> Request:
    """A new write under a key."""
    return Request(uuid4(), key, more.pop("outbox", OUTBOX), **more)


def of_stream(batch: int, stream: str = "one") -> Request:
    """A batch of a stream."""
    return request(batch=batch, stream=stream)


class Writer:
    """Writes so many messages, and counts how often it was asked to."""

    def __init__(self, messages: int = 3) -> None:
        self.messages, self.times = messages, 0

    def __call__(self, begun: Written) -> Written:
        """Write."""
        self.times += 1
        return replace(begun, messages=self.messages, first_id=1, last_id=self.messages)


@pytest.fixture
def writer() -> Writer:
    """Write three messages, if it is asked to."""
    return Writer()


@pytest.fixture
def free(connection: Connection) -> Connection:
    """A connection whose statements are transactions of their own."""
    connection.autocommit = True
    return connection


def keys(connection: Connection) -> list[str]:
    """The keys that the ledger knows."""
    return [key for (key,) in connection.execute(KEYS)]


def test_another_write(free: Connection, writer: Writer) -> None:
    """Of two writes of a key the second is not done, and returns what the first has written."""
    first = write_once(free, request(), writer)
    assert write_once(free, request(), writer) == replace(
        first, total=3, repeated=True, known_by="k"
    )
    assert (first.messages, first.repeated, writer.times) == (3, False, 1)


def test_this_write(free: Connection, writer: Writer) -> None:
    """A write that is tried again under its id is known as the same, whatever `on_repeat` is."""
    for on_repeat in ("error", "again", "skip"):
        asked = request(on_repeat, on_repeat=on_repeat)
        done = [write_once(free, asked, writer).repeated for _ in range(2)]
        assert done == [False, True]
    assert writer.times == 3


def test_again(free: Connection, writer: Writer) -> None:
    """A write that is wanted again is done again, under the next number; all messages count."""
    batches = [write_once(free, request(on_repeat="again"), writer).batch for _ in range(3)]
    known = last_written(free, request())
    assert known is not None
    assert (batches, known.messages, known.total) == ([0, 1, 2], 3, 9)


def test_error(free: Connection, writer: Writer) -> None:
    """A write that must not be repeated says what was written, before it begins and at its end."""
    write_once(free, request(), lambda begun: replace(writer(begun), tables={"sales": 4}))
    refused = request(on_repeat="error")
    said = "k was written already, 3 messages and 4 rows"
    with pytest.raises(OutboxError, match=said):
        already_written(free, refused)
    with pytest.raises(OutboxError, match=said):
        write_once(free, refused, writer)
    assert writer.times == 1


def test_what_fails_is_not_written(free: Connection, writer: Writer) -> None:
    """If the write raises, its key is still free."""
    with pytest.raises(ZeroDivisionError):
        write_once(free, request(), lambda begun: replace(begun, messages=1 // 0))
    assert (keys(free), already_written(free, request())) == ([], None)
    assert not write_once(free, request(), writer).repeated


def test_in_a_transaction_of_the_callers(connection: Connection, writer: Writer) -> None:
    """In a transaction that the caller has begun, the key is written when that commits."""
    for end, times in ((connection.rollback, 1), (connection.commit, 2), (connection.commit, 2)):
        connection.execute("SELECT 1")
        write_once(connection, request(), writer)
        end()
        assert writer.times == times


def test_several_keys(free: Connection, writer: Writer) -> None:
    """Several keys are written together, and each of them alone is known then."""
    write_once(free, request(["b", "a", "b"]), writer)
    assert keys(free) == ["a", "b"]
    for again in (["a", "b"], "a", "b"):
        assert write_once(free, request(again), writer).repeated
    assert writer.times == 1


def test_some_of_several_keys(free: Connection, writer: Writer) -> None:
    """If some keys are written and others are not, nothing is, unless all are wanted again."""
    write_once(free, request(list("abcdefg")), writer)
    for on_repeat in ("skip", "error"):
        with pytest.raises(OutboxError, match=r"of the 8 keys a … h .*: a, b, c, d, e and 2 more"):
            write_once(free, request(list("abcdefgh"), on_repeat=on_repeat), writer)
    assert keys(free) == list("abcdefg")
    assert not write_once(free, request(list("abcdefgh"), on_repeat="again"), writer).repeated
    assert (keys(free), writer.times) == (list("abcdefgh"), 2)


def test_another_table(free: Connection, writer: Writer) -> None:
    """A key belongs to one table, by whatever name; for another one it is refused."""
    write_once(free, request(), writer)
    assert write_once(free, request(outbox=TableName("outbox", "public")), writer).repeated
    with pytest.raises(OutboxError, match="a key belongs to one outbox"):
        write_once(free, request(outbox=TableName("goharvest_outbox")), writer)


def test_batches_of_a_stream(free: Connection, writer: Writer) -> None:
    """A stream writes each batch once, and goes on over batches that had nothing."""
    done = [write_once(free, of_stream(batch), writer).repeated for batch in (0, 0, 1, 1, 4)]
    assert (done, writer.times) == ([False, True, False, True, False], 3)
    known = last_written(free, request())
    assert known is not None
    assert (known.batch, known.messages, known.total) == (4, 3, 9)


@pytest.mark.parametrize(
    "wrong",
    [of_stream(0), of_stream(1, "two"), of_stream(2, "two")],
    ids=["an old batch", "the same number", "a later one"],
)
def test_batches_of_another_checkpoint(free: Connection, writer: Writer, wrong: Request) -> None:
    """A batch that is behind, or of another stream, is refused, and not taken for a replay."""
    write_once(free, of_stream(1), writer)
    with pytest.raises(OutboxError, match="has committed batch 1, and now comes batch"):
        write_once(free, wrong, writer)
    assert writer.times == 1


def test_a_stream_and_another_write(free: Connection, writer: Writer) -> None:
    """Neither may use a key of the other's, even if it is one of several."""
    write_once(free, of_stream(0), writer)
    write_once(free, request("other"), writer)
    for refused in (request(), request(["k", "other"], on_repeat="again")):
        with pytest.raises(OutboxError, match="is that of a stream"):
            write_once(free, refused, writer)
    with pytest.raises(OutboxError, match="of another checkpoint"):
        write_once(free, replace(of_stream(0), key="other"), writer)


def test_without_a_key(free: Connection, writer: Writer) -> None:
    """A write without a key is known by its id for a day, and forgotten by a later write."""
    asked = request(None)
    assert [write_once(free, asked, writer).repeated for _ in range(2)] == [False, True]
    write_once(free, request("kept"), writer)
    free.execute("UPDATE harvest.written SET at = now() - interval '2 days'")
    write_once(free, request("new"), writer)
    assert keys(free) == ["kept", "new"]


def test_nothing() -> None:
    """Before it begins a write has written nothing."""
    begun = nothing(of_stream(7))
    assert (begun.batch, begun.outbox, begun.messages, begun.stream) == (7, "outbox", 0, "one")


def at_once(database: str, asked: Sequence[Request], writer: Callable[[Written], Written]) -> int:
    """Write all of it at the same moment; return how many were not repeated."""
    start = Barrier(len(asked))

    def run(each: Request) -> bool:
        with psycopg.connect(database, autocommit=True) as connection:
            start.wait()
            return write_once(connection, each, writer).repeated

    with ThreadPoolExecutor(len(asked)) as pool:
        return [*pool.map(run, asked)].count(False)


def test_many_at_once(database: str, free: Connection, writer: Writer) -> None:
    """Of many writers of the same keys, in whatever order they have them, one writes."""
    names = [f"key {number}" for number in range(50)]
    for turn in range(4):
        mine = [f"{name} of {turn}" for name in names]
        asked = [request(mine), request(mine[::-1]), request(mine), request(mine[::-1])]
        assert at_once(database, asked, writer) == 1
    assert writer.times == 4
    assert free.execute(DEADLOCKS).fetchone() == (0,)


@pytest.mark.parametrize("error", [DeadlockDetected, SerializationFailure])
@pytest.mark.parametrize("times", [4, 5])
def test_tried_again(
    free: Connection, writer: Writer, error: type[psycopg.Error], times: int
) -> None:
    """A write that another one was in the way of is tried again, four times, and then given up."""

    def write(begun: Written) -> Written:
        done = writer(begun)
        if writer.times <= times:
            raise error
        return done

    if times == 5:
        with pytest.raises(error):
            write_once(free, request(), write)
    else:
        assert not write_once(free, request(), write).repeated
    assert (writer.times, len(keys(free))) == (5, 5 - times)
