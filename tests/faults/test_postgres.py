"""PostgreSQL cuts connections, locks rows, refuses writes, or has no time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.deliveries import ALL, DELIVERIES
from tests.support.faults import BUSY, database_set, locked, refused, settle, terminate
from tests.support.waiting import until

if TYPE_CHECKING:
    from harvest_dagster.embedded import Servers
    from tests.support.load import Load
    from tests.support.place import Place
    from tests.support.running import RunningTour, StartHarvest, StartTour


def progress(running: RunningTour) -> None:
    """Wait until some more records are purged."""
    before = running.tour.totals.purged
    until(lambda: running.tour.totals.purged > before + 100)


@ALL
def test_connections_cut_again_and_again(
    place: Place, start_tour: StartTour, delivery: str
) -> None:
    """However often all connections are cut, at whatever moment, all goes out as it should."""
    place.put(6000)
    running = start_tour(place.config(delivery=delivery, limits=BUSY), place.lease())
    for _ in range(6):
        progress(running)
        until(lambda: terminate(place))  # between two rounds there is nothing to cut
    settle(place, delivery)
    assert running.end() is None


@DELIVERIES
def test_every_connection_cut_in_quick_succession(
    place: Place, start_harvest: StartHarvest, delivery: str, load: Load
) -> None:
    """A harvest whose connections are cut while it makes new ones, the candidate's too, goes on."""
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.events("tour_started"))
    for _ in range(15):
        until(lambda: terminate(place))
    load.stop()
    settle(place, delivery)


@DELIVERIES
@pytest.mark.parametrize("is_fenced", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_lease_is_locked(
    place: Place, start_harvest: StartHarvest, delivery: str, load: Load, *, is_fenced: bool
) -> None:
    """While somebody holds the lease's row nobody writes; afterwards it goes on.

    If that lasts for longer than trust in the lease, the leader is fenced.
    """
    running = start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.events("tour_started"))
    with locked(place, "SELECT * FROM harvest.lease FOR UPDATE"):
        until(lambda: place.is_waiting("harvest %"))
        until(lambda: not is_fenced or "LeaderFenced" in running.kinds())
    load.stop()
    settle(place, delivery)


@DELIVERIES
@pytest.mark.parametrize(
    "statement",
    ["LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE", "SELECT * FROM outbox FOR UPDATE"],
)
def test_the_outbox_is_locked(
    place: Place, start_tour: StartTour, delivery: str, statement: str
) -> None:
    """While somebody holds the outbox, or its rows, the harvest waits."""
    place.put(3000)
    start_tour(place.config(delivery=delivery, limits=BUSY), place.lease())
    until(lambda: place.waiting() < 2500)
    with locked(place, statement):
        until(lambda: place.is_waiting("harvest %"))
    settle(place, delivery)


@ALL
def test_deadlock(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A purge that is the victim of a deadlock is made up for."""
    place.put(40)
    with locked(place, "SELECT id FROM outbox WHERE id = 30 FOR UPDATE") as operator:
        running = start_tour(place.config(delivery=delivery, limits=BUSY), place.lease())
        operator.execute("SET deadlock_timeout = '1min'")
        until(lambda: place.is_waiting("harvest %purge"))
        operator.execute("SELECT id FROM outbox WHERE id BETWEEN 1 AND 29 FOR UPDATE")
        until(lambda: place.is_waiting("harvest %"))
    settle(place, delivery)
    assert running.end() is None


@ALL
def test_read_only(
    place: Place, servers: Servers, start_harvest: StartHarvest, delivery: str
) -> None:
    """While the database takes no writes nothing is published twice, and then it goes on."""
    place.put(3000)
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.waiting() < 2500)
    with database_set(place, servers, "default_transaction_read_only", "on"):
        refused(place, 20)
    settle(place, delivery)


@DELIVERIES
def test_no_time(place: Place, servers: Servers, start_tour: StartTour, delivery: str) -> None:
    """While hardly any statement comes to its end nothing is lost, and then it goes on."""
    place.put(3000)
    start_tour(place.config(delivery=delivery, limits=BUSY), place.lease())
    until(lambda: place.waiting() < 2500)
    with database_set(place, servers, "statement_timeout", "2"):
        refused(place, 5)
    terminate(place)
    settle(place, delivery)


def cut_all_the_time(place: Place, stop: threading.Event) -> None:
    """Cut the connections of harvests, at random moments of their work."""
    while not stop.wait(0.7):
        terminate(place)


@pytest.mark.long
@DELIVERIES
def test_two_candidates_cut(
    place: Place, start_harvest: StartHarvest, delivery: str, load: Load
) -> None:
    """Two candidates whose connections are cut all the time publish all the same."""
    for _ in range(2):
        start_harvest(place.config(delivery=delivery, limits=BUSY))
    stop = threading.Event()
    cutter = threading.Thread(target=cut_all_the_time, args=(place, stop))
    cutter.start()
    until(lambda: len(place.stashed) > 3000)
    stop.set()
    cutter.join()
    load.stop()
    settle(place, delivery)
