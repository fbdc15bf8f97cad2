"""Nothing that a leader of an old term does leaves a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.errors import FencedError
from harvest_dagster.harvest.batch import Batch, Row
from harvest_dagster.harvest.park import park
from harvest_dagster.harvest.purge import Purger
from harvest_dagster.harvest.recover import recover
from harvest_dagster.harvest.table_statements import Sharding, Statements, statements_for
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger import events
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.postgres.names import TableName
from tests.support.account import read
from tests.support.lost_answer import LosesAnswer
from tests.support.proxies import served
from tests.support.remains import claim
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

TABLES = ("outbox", "harvest.claim", "harvest.parked", "harvest.event", "harvest.retained")
RECORD: Row = (1, "t", b"k", b"v", [], [], None, None)


class Old:
    """A leader whose term is over, with its statements."""

    def __init__(self, place: Place, connection: psycopg.Connection[Any]) -> None:
        self.lease = place.lease()
        self.fence = Fence(self.lease)
        self.connection = connection
        self.sql: Statements = statements_for(
            connection, TableName("outbox"), Sharding(), mark_rows=False, retain=True
        )
        self.purger = Purger(connection, self.sql, self.fence)

    def event(self) -> None:
        """Write an event, which is done silently; that this was in vain is seen in the table."""
        before = len(events.read(self.connection))
        self.fence.note(self.connection, "tour_ended", {})
        if len(events.read(self.connection)) == before:
            raise FencedError("no row")

    def claim(self) -> None:
        """Write a claim."""
        more = {"batch": 9, "ids": "{[1,3)}", "count": 2, "exactly_once": True}
        self.fence.write(self.connection, self.sql.claim, **more)

    def park(self) -> None:
        """Park a record."""
        park(self.connection, self.sql, self.fence, [(RECORD, "large")], hold_keys=True)

    def recover(self) -> None:
        """Settle claims."""
        recover(self.connection, self.purger, self.fence, 1, "a test")

    def refresh(self) -> None:
        """Take the next epoch."""
        leases.refresh(self.connection, self.lease, "a test")


WRITES: dict[str, Callable[[Old], object]] = {
    "event": Old.event,
    "claim": Old.claim,
    "park": Old.park,
    "recover": Old.recover,
    "refresh": Old.refresh,
    "purge": lambda old: old.purger.up_to(1),
}


@pytest.fixture
def old(place: Place) -> Iterator[Old]:
    """Give a leader with claims, which was followed by another."""
    place.put(3)
    with place.connect() as connection:
        leader = Old(place, connection)
        claim(place, leader.lease, 1, 1, 3)
        yield leader


def contents(place: Place) -> list[list[Any]]:
    """Read all that a leader writes."""
    return [place.rows(f"SELECT * FROM {table}") for table in (*TABLES, "harvest.lease")]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_an_old_term_writes_nothing(place: Place, old: Old, write: Callable[[Old], object]) -> None:
    """A statement of an old term changes no row of any table, and its leader is told."""
    place.lease()
    before = contents(place)
    with pytest.raises(FencedError):
        write(old)
    assert contents(place) == before


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_the_present_term_writes(place: Place, old: Old, write: Callable[[Old], object]) -> None:
    """The same statements do something as long as the term lasts."""
    before = contents(place)
    write(old)
    assert contents(place) != before


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_an_old_tour_does_nothing(place: Place, delivery: str) -> None:
    """A tour that begins under an old term ends at once, without a message or a row."""
    place.put(10)
    lease = place.lease()
    place.lease()
    before = contents(place)
    with pytest.raises(FencedError):
        Tour(place.config(delivery=delivery), lease, lambda: True).run()
    assert contents(place) == before
    assert read(place.kafka, place.topic) == []


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_a_tour_ends_when_another_leads(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A tour whose lease was taken notices at its next write, and leaves the record alone."""
    running = start_tour(place.config(delivery=delivery), place.lease())
    until(lambda: running.tour.totals.rounds == 1)
    place.put(10)
    place.drained()
    taken = place.lease()
    place.put(1)
    running.join()
    assert isinstance(running.failure, FencedError)
    assert place.waiting() == 1
    assert place.events()[-1].epoch == taken.epoch


def test_a_tour_that_is_not_trusted_writes_nothing(place: Place, start_tour: StartTour) -> None:
    """When leadership can't be confirmed, a tour ends before its next write."""
    running = start_tour(place.config(), place.lease())
    until(lambda: running.tour.totals.rounds == 1)
    running.trusted = False
    place.put(10)
    running.join()
    assert isinstance(running.failure, FencedError)
    assert place.waiting() == 10


def test_a_purge_in_progress_is_waited_for(place: Place, old: Old) -> None:
    """Whoever takes the lease waits for a write of the leader that is under way."""
    old.connection.autocommit = False
    old.purger.up_to(1)
    with place.connect() as impatient:
        impatient.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            leases.acquire(impatient, place.name, 0, "next", 60)
    old.connection.commit()
    assert place.lease().epoch == old.lease.epoch + 1


def test_a_batch_counts_down() -> None:
    """A batch knows how many of its records are left."""
    assert Batch(1, [RECORD, RECORD], 2).left == 2


@pytest.fixture
def loses_a_refresh(place: Place) -> Iterator[LosesAnswer]:
    """Give a way to the database on which nobody hears of the first refresh."""
    with served(LosesAnswer(place.postgres, b"'refreshed' AS kind")) as way:
        yield way


def test_an_answer_that_is_lost_ends_no_leadership(
    place: Place, loses_a_refresh: LosesAnswer, start_tour: StartTour
) -> None:
    """A refresh that PostgreSQL made, but whose answer was lost, does not end the tour."""
    start_tour(place.config(postgres=loses_a_refresh.url), place.lease())
    place.put(10)
    place.drained()
    place.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name LIKE 'harvest%mark' AND datname = current_database()"
    )
    until(loses_a_refresh.lost.is_set)
    place.put(10)
    place.drained()
    assert place.kinds("refreshed") == 2 * ["refreshed"]


def test_nothing_is_sent_on_waking(place: Place, start_tour: StartTour) -> None:
    """At least once, a leader whose lease ran out while a purge was under way sends no more."""
    place.put(5, keys=1)
    running = start_tour(place.config(delivery="at_least_once"), place.lease())
    with place.connect() as blocker:
        with blocker.transaction():
            blocker.execute("SELECT FROM outbox WHERE id = 3 FOR UPDATE")
            until(lambda: place.is_waiting("harvest %"))
            running.trusted = False
        running.join()
    assert isinstance(running.failure, FencedError)
    assert len(read(place.kafka, place.topic)) == 3
