"""A name is led as one word: whoever would lead it as another is refused, and changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from harvest_dagster.errors import RivalError
from harvest_dagster.ledger import events, lease
from harvest_dagster.ledger.words import names

Connection = psycopg.Connection[Any]
Ask = Callable[..., lease.Lease | None]

BOTH_WAYS = pytest.mark.parametrize("ask", [lease.acquire, lease.take])
REFUSED = "^orders is led as outbox here: give this counter another name$"


def rows(connection: Connection) -> list[tuple[Any, ...]]:
    """All leases, column by column."""
    return connection.execute("SELECT * FROM harvest.lease ORDER BY name, shard").fetchall()


@BOTH_WAYS
def test_it_is_written(free: Connection, ask: Ask) -> None:
    """A lease has the word that it was taken as; a harvest's, where none was said."""
    ask(free, "count", 0, "x", 60, word="counter")
    ask(free, "orders", 0, "x", 60)
    assert [(row.name, row.word) for row in lease.read(free)] == [
        ("count", "counter"),
        ("orders", "outbox"),
    ]


@BOTH_WAYS
def test_the_next_leader_leads_as_the_same(free: Connection, ask: Ask) -> None:
    """A lease that has expired is taken under its next epoch, as the word that it has."""
    ask(free, "count", 0, "x", 0.0, word="counter")
    after = ask(free, "count", 0, "y", 60, word="counter")
    assert after is not None
    assert after.epoch == 2
    assert [row.word for row in lease.read(free)] == ["counter"]


@BOTH_WAYS
@pytest.mark.parametrize("seconds", [60, 0.0], ids=["led", "expired"])
@pytest.mark.parametrize("shard", [0, 1], ids=["of its shard", "of another shard"])
def test_another_word_is_refused(free: Connection, ask: Ask, seconds: float, shard: int) -> None:
    """The error says as what the name is led, and what to do; the other's lease stays as it is."""
    lease.acquire(free, "orders", 0, "x", seconds)
    before, happened = rows(free), events.read(free)
    with pytest.raises(RivalError, match=REFUSED):
        ask(free, "orders", shard, "y", 60, word="counter")
    assert (rows(free), events.read(free)) == (before, happened)


@BOTH_WAYS
def test_a_harvest_is_refused_likewise(free: Connection, ask: Ask) -> None:
    """No word comes before another: who was there first has the name."""
    lease.take(free, "count", 0, "x", 60, word="counter")
    with pytest.raises(RivalError, match="count is led as counter here: give this outbox another"):
        ask(free, "count", 0, "y", 60)


@BOTH_WAYS
def test_a_refusal_waits_for_nobody(database: str, free: Connection, ask: Ask) -> None:
    """While the leader writes, who is refused neither waits for that nor holds it up."""
    lease.acquire(free, "orders", 0, "x", 60)
    with psycopg.connect(database) as writing:
        writing.execute("SELECT FROM harvest.lease FOR KEY SHARE")
        free.execute("SET lock_timeout = '1s'")
        with pytest.raises(RivalError):
            ask(free, "orders", 0, "y", 60, word="counter")


@BOTH_WAYS
def test_of_two_words_at_once_one_has_the_name(database: str, free: Connection, ask: Ask) -> None:
    """Of two who take a new name in the same moment as two words, one is refused."""
    barrier, rounds = threading.Barrier(2), 50
    got: dict[str, list[bool]] = {"counter": [], "outbox": []}

    def take(word: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for number in range(rounds):
                barrier.wait(30)
                try:
                    ask(connection, f"n{number}", 0, word, 60, word=word)
                    got[word].append(True)
                except RivalError:
                    got[word].append(False)

    threads = [threading.Thread(target=take, args=(word,)) for word in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(pair) for pair in zip(*got.values(), strict=True)] == [1] * rounds
    assert all((row.epoch, row.holder) == (1, row.word) for row in lease.read(free))


def test_names(free: Connection) -> None:
    """What is led as a word is listed by its names, with leader and epoch of each shard."""
    lease.acquire(free, "orders", 0, "x", 60)
    for shard, seconds in ((1, 0.0), (0, 60)):
        lease.take(free, "wheel", shard, f"h{shard}", seconds, word="counter")
    lease.take(free, "clock", 0, "x", 0.0, word="counter")
    lease.take(free, "clock", 0, "y", 60, word="counter")
    clock, wheel = names(free, "counter")
    assert (clock.name, clock.shards, clock.leaders, clock.epochs) == ("clock", 1, ["y"], [2])
    assert (wheel.name, wheel.leaders, wheel.epochs) == ("wheel", ["h0", None], [1, 1])
    assert 0 <= wheel.renewed_seconds < 60
    assert names(free, "lamp") == []
