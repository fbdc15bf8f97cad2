"""A tour on behalf of a candidate elsewhere, of which there is only the lease's row here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.errors import FencedError
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.work import tours
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.tours import TourRow
from tests.support.account import judge, read
from tests.support.place import Place
from tests.support.remains import claim, producer_of, publish
from tests.support.waiting import seconds_until, until

if TYPE_CHECKING:
    from tests.support.running import StartHarvest

Begin = Callable[[str], Delegate]


@pytest.fixture
def begin(place: Place) -> Iterator[Begin]:
    """Begin delegates for runs of a name; they are closed when the test ends."""
    begun: list[Delegate] = []

    def start(run: str) -> Delegate:
        begun.append(Delegate(Harvesting(place.config()), 0, run))
        begun[-1].begin()
        return begun[-1]

    yield start
    for delegate in begun:
        delegate.close(5)


def row(place: Place) -> TourRow:
    """Read what the tour says of itself."""
    with place.connect() as connection:
        (found,) = tours.read(connection, place.name)
    return found


def test_it_harvests_and_tells_of_itself(place: Place, begin: Begin) -> None:
    """It takes an epoch of its own, harvests, says how far it is, and settles when it drains."""
    place.put(500)
    held = place.lease()
    delegate = begin("run-1")
    assert delegate.work.lease.epoch == held.epoch + 1
    place.drained()
    until(lambda: row(place).done == 500)
    assert (row(place).run, row(place).alive) == ("run-1", True)
    delegate.drain("a test")
    assert seconds_until(lambda: delegate.wait(0)) < 10
    until(lambda: row(place).ended)
    assert (row(place).figure("purged"), row(place).figure("in_flight")) == (500, 0)
    assert delegate.work.figures["in_flight"] == 0
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_it_tells_what_it_found(place: Place) -> None:
    """What it recovers is told when it begins."""
    place.put(30)
    dead = place.lease()
    claim(place, dead, 1, 1, 10)
    claim(place, dead, 2, 11, 20)
    publish(place, 1, place.stashed[:10], producer_of(place))
    delegate = Delegate(Harvesting(place.config()), 0, "run-1")
    found = delegate.begin()
    delegate.close(10)
    assert found == {"published": 10, "remarked": 10}


def test_a_drain_is_not_put_off(place: Place, begin: Begin) -> None:
    """However often it is asked to drain, what is stuck is cut off when the first time is over."""
    place.put(10)
    place.lease()
    with place.connect() as blocker, blocker.transaction():
        blocker.execute("SELECT FROM outbox FOR UPDATE")
        delegate = begin("run-1")
        until(lambda: delegate.work.figures["in_flight"] == 10)
        delegate.drain("a test", 1.0)

        def asked_again() -> bool:
            delegate.drain("a test", 60.0)
            return delegate.wait(0)

        assert seconds_until(asked_again) < 10


def test_a_second_takes_over_in_good_order(place: Place, begin: Begin) -> None:
    """A tour that begins lets the one before it drain; all that it published counts on."""
    place.put(200)
    place.lease()
    first = begin("run-1")
    place.drained()
    second = begin("run-2")
    until(lambda: first.wait(0))
    place.put(100)
    place.drained()
    until(lambda: row(place).done == 100)
    assert (row(place).run, row(place).done_before) == ("run-2", 200)
    second.close(10)
    assert place.kinds("remarked") == []
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_it_is_asked_to_drain(place: Place, begin: Begin) -> None:
    """Whoever leads can ask for the end through its row."""
    place.lease()
    delegate = begin("run-1")
    with place.connect() as connection:
        assert tours.ask_to_drain(connection, place.name, 0)
    until(lambda: delegate.wait(0))
    assert delegate.reason == "it hands over, to another leader or to its successor"


def test_a_lease_that_runs_out(place: Place, begin: Begin) -> None:
    """A tour that has nothing to do does not go on under it: it ends, as a busy one does."""
    place.lease(ttl=5.0)
    delegate = begin("run-1")
    with pytest.raises(FencedError, match="the lease was lost"):
        until(lambda: delegate.wait(0))
    until(lambda: row(place).ended)


def test_a_harvest_that_it_takes_over_from(
    place: Place, begin: Begin, start_harvest: StartHarvest
) -> None:
    """A run that takes up another process's lease leaves nobody leading without a tour."""
    harvest = start_harvest(place.config()).harvest
    until(harvest.is_leader)
    place.put(10)
    place.drained()
    begin("a run that waited for long")
    until(lambda: place.put(1) and len(place.kinds("acquired")) == 2)
    place.put(10)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_a_lease_that_is_taken_ends_it(place: Place, begin: Begin) -> None:
    """When another leads, it ends without another write."""
    place.lease()
    delegate = begin("run-1")
    place.lease()
    with pytest.raises(FencedError, match=r"lost|another leader|is over"):
        until(lambda: delegate.wait(0))


def test_a_lease_that_is_not_renewed_ends_it(place: Place, begin: Begin) -> None:
    """When nobody renews the lease, it is trusted for no longer than it lasts."""
    place.lease(ttl=10.0)
    delegate = begin("run-1")
    place.put(10)
    place.drained()
    with place.connect() as connection:
        until(lambda: leases.read(connection, place.name)[0].expired)
    place.put(10)
    with pytest.raises(FencedError):
        until(lambda: delegate.wait(0))
    assert place.waiting() == 10


def test_nobody_leads(place: Place) -> None:
    """Without a leader no tour begins, and it says what would make one."""
    place.lease(ttl=0.0)
    with pytest.raises(FencedError, match="turn the sensor on"):
        Delegate(Harvesting(place.config()), 0, "run-1").begin()


def test_two_at_once(place: Place, begin: Begin) -> None:
    """Of two that begin at the same moment one goes on, and nothing is sent twice."""
    place.put(1000)
    place.lease()

    def try_to_begin(run: str) -> None:
        with suppress(FencedError):  # the other was quicker
            begin(run)

    threads = [threading.Thread(target=try_to_begin, args=(run,)) for run in ("run-1", "run-2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_a_silent_tour_is_not_waited_for(place: Place, begin: Begin) -> None:
    """A tour that is gone without a word does not keep the next from beginning."""
    held: Lease = place.lease()
    place.rows(
        "INSERT INTO harvest.tour (name, shard, id, epoch, run, started_at, seen_at)"
        " VALUES (%s, 0, gen_random_uuid(), %s, 'gone', now(), now() - interval '1 minute')",
        (held.name, held.epoch),
    )
    assert begin("run-1").work.lease.epoch == held.epoch + 1
