"""Records whose ids were drawn early and committed late, and ids that never come."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message, stash
from tests.support.account import judge, lanes, read
from tests.support.waiting import seconds_until, until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import RunningTour, StartTour

MUST_SECONDS = 1.0
LINGERS = {"producer_kafka": {"linger.ms": 60_000}, "delivery": "at_least_once"}
SEQUENCE = "pg_get_serial_sequence('outbox', 'id')"
INSERT = "INSERT INTO outbox (id, kafka_topic, kafka_key, kafka_value) VALUES (%s, %s, 'k', 'late')"

Late = Callable[[], None]


@contextmanager
def opened(place: Place) -> Iterator[Late]:
    """Stash, and hold the transaction open."""
    with psycopg.connect(place.postgres) as connection:
        stash(connection, Message(place.topic, "k", "late"))
        yield connection.commit


@contextmanager
def drawn(place: Place) -> Iterator[Late]:
    """Only draw the id, so that there is no xid yet."""
    with psycopg.connect(place.postgres) as connection:
        (number,) = connection.execute(f"SELECT nextval({SEQUENCE})").fetchone() or (0,)

        def finish() -> None:
            connection.execute(INSERT, (number, place.topic))
            connection.commit()

        yield finish


@contextmanager
def prepared(place: Place) -> Iterator[Late]:
    """Stash, and prepare the transaction, which then has no session any more."""
    gid = uuid.uuid4().hex
    with psycopg.connect(place.postgres) as connection:
        stash(connection, Message(place.topic, "k", "late"))
        connection.execute(f"PREPARE TRANSACTION '{gid}'")

    def finish() -> None:
        place.rows(f"COMMIT PREPARED '{gid}'")

    yield finish


@contextmanager
def prepared_later(place: Place) -> Iterator[Late]:
    """Stash, and prepare only when the gap is watched already."""
    gid = uuid.uuid4().hex
    with psycopg.connect(place.postgres) as connection:
        stash(connection, Message(place.topic, "k", "late"))

        def finish() -> None:
            connection.execute(f"PREPARE TRANSACTION '{gid}'")
            place.goes_round()
            place.rows(f"COMMIT PREPARED '{gid}'")

        yield finish


def marked(running: RunningTour, records: int) -> None:
    """Wait until so many are marked."""
    until(lambda: running.tour.totals.marked >= records)


@pytest.mark.parametrize("committed", [0, 999])
@pytest.mark.parametrize("hold", [opened, drawn, prepared, prepared_later])
def test_late_commit(place: Place, start_tour: StartTour, hold: Any, committed: int) -> None:
    """A record with the first id, committed after all others were harvested, comes in a second."""
    with hold(place) as finish:
        place.put(committed)
        running = start_tour(place.config(), place.lease())
        until(lambda: running.tour.totals.rounds == 1)
        place.drained()
        place.goes_round()
        finish()
        seconds = seconds_until(lambda: running.tour.totals.purged == committed + 1)
    assert seconds < MUST_SECONDS
    late = Message(place.topic, "k", "late")
    judge([late, *place.stashed], read(place.kafka, place.topic), "exactly_once")


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_late_commit_goes_before_what_follows_it(
    place: Place, start_tour: StartTour, delivery: str
) -> None:
    """What was stashed after a late commit, because of it, is published after it."""
    start_tour(place.config(delivery=delivery), place.lease())
    with psycopg.connect(place.postgres) as late, psycopg.connect(place.postgres) as next_one:
        for number in range(40):
            key = f"late-{number}"
            stash(late, Message(place.topic, key, "first"))
            place.put(3)
            place.drained()
            late.commit()
            stash(next_one, Message(place.topic, key, "second"))
            next_one.commit()
        place.drained()
    found = lanes(read(place.kafka, place.topic))
    wrong = [key for (_, key), values in found.items() if values[:2] == [b"second", b"first"]]
    assert wrong == []


def test_found_by_the_sweep_and_the_watch(place: Place, start_tour: StartTour) -> None:
    """A late record that a sweep comes upon before the gap watch does is marked once."""
    running = start_tour(place.config(**LINGERS), place.lease(), sweep_seconds=0.05)
    with psycopg.connect(place.postgres) as late:
        for number in range(4, 81, 4):
            stash(late, Message(place.topic, f"late-{number}", "late"))
            place.put(3)
            late.commit()
            marked(running, number)
        place.goes_round()
    assert running.tour.totals.marked == 80


def test_rolled_back_million(place: Place, start_tour: StartTour) -> None:
    """A million ids that never come, while a transaction stays open, slow nothing down."""
    with psycopg.connect(place.postgres) as old:
        old.execute("SELECT txid_current()")
        place.put(100)
        place.rows(f"SELECT setval({SEQUENCE}, 1000000)")
        place.put(5000)
        running = start_tour(place.config(), place.lease())
        seconds = seconds_until(lambda: running.tour.totals.purged == 5100)
    print(f"5,100 records around a million missing ids in {seconds:.2f} s")  # noqa: T201 - figures
    assert seconds < 5


def test_many_gaps(place: Place, start_tour: StartTour) -> None:
    """With thousands of gaps to watch, a late commit still comes in a second."""
    with psycopg.connect(place.postgres) as old:
        stash(old, Message(place.topic, "k", "late"))
        place.put(10_000)
        place.rows("DELETE FROM outbox WHERE id % 2 = 0")
        running = start_tour(place.config(), place.lease())
        until(lambda: running.tour.totals.purged == 5000)
        place.goes_round()
        old.commit()
        assert seconds_until(lambda: running.tour.totals.purged == 5001) < MUST_SECONDS


def test_restored(place: Place, start_tour: StartTour) -> None:
    """A record put back under an old id, which no gap explains, is found by the sweep."""
    place.put(100)
    running = start_tour(place.config(), place.lease(), sweep_seconds=0.2)
    place.drained()
    place.goes_round()
    place.rows(INSERT, (50, place.topic))
    until(lambda: running.tour.totals.purged == 101)
    assert b"late" in [m.value for m in read(place.kafka, place.topic)]


def test_behind_others_records(place: Place, start_tour: StartTour) -> None:
    """A late commit goes first also where many records that wait for a topic came with it."""
    start_tour(place.config(limits={"mark_query_records": 20}), place.lease())
    place.put(1)
    place.drained()
    with psycopg.connect(place.postgres) as late:
        stash(late, (Message(f"{place.topic}-missing", "k", str(n)) for n in range(100)))
        stash(late, Message(place.topic, "k", "first"))
        place.put(1)
        until(lambda: place.waiting() == 0)
        late.commit()
    with psycopg.connect(place.postgres) as after:
        stash(after, Message(place.topic, "k", "second"))
    until(lambda: place.waiting() == 100)
    assert lanes(read(place.kafka, place.topic))[place.topic, b"k"] == [b"first", b"second"]
