"""Readers that are led: who takes over, what ends them, and what they go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from harvest_dagster.election.candidate import State
from harvest_dagster.errors import ReaderError
from harvest_dagster.reader import ReadBatch, Reader
from harvest_dagster.reader.positions import Position
from tests.support.reading import Apply, Shelf, insert
from tests.support.waiting import until

Start = Callable[..., Reader]


@pytest.fixture
def start(shelf: Shelf) -> Iterator[Start]:
    """Start readers; they are stopped when the test ends."""
    running: list[Reader] = []

    def begin(apply: Apply = insert) -> Reader:
        places = {"kafka": shelf.place.kafka, "postgres": shelf.url}
        topics = [shelf.topic]
        reader = Reader(shelf.name, topics=topics, store=shelf.store, apply=apply, **places)
        running.append(reader)
        reader.start()
        return reader

    yield begin
    for reader in running:
        if reader.state is not State.STOPPED:
            reader.stop(20)


def test_one_reads_and_the_other_takes_over(shelf: Shelf, start: Start) -> None:
    """Of two, one leads; where it ends, the other goes on."""
    readers = [start(), start()]
    shelf.write("A1O")
    shelf.has_seen("A1O")
    leader = next(reader for reader in readers if reader.runner.leads(0))
    leader.stop(20)
    shelf.write("A1O", "A2O")
    shelf.has_seen("A1O", "A2O")
    assert sorted(reader.figures["applied"] for reader in readers) == [1, 1]


def test_it_goes_on_when_it_is_reset(shelf: Shelf, start: Start) -> None:
    """It is fenced, and begins again by itself where the operator says."""
    start()
    shelf.write("-1", "-2")
    shelf.has_seen("-1", "-2")
    with shelf.store.connect("test") as connection:
        (at,) = [p for p in shelf.store.positions(connection, shelf.name) if p.partition == 0]
        back = Position(*at.place, at.topic_id, 1, 0, 0)
        shelf.store.reset(connection, shelf.name, [back])
    shelf.write("-3")
    until(lambda: "-3" in shelf.seen())
    assert shelf.seen() == ["-1", "-2", "-2", "-3"]


def test_what_ends_it(shelf: Shelf, start: Start) -> None:
    """`wait` raises what apply could not take, and the store has nothing of it."""

    def apply(batch: ReadBatch) -> None:
        insert(batch)
        raise psycopg.errors.UniqueViolation("no two of these")

    reader = start(apply)
    shelf.write("A1O")
    with pytest.raises(ReaderError, match=r"apply raised UniqueViolation at .*, offset 0: no two"):
        reader.wait(40)
    assert shelf.seen() == []
