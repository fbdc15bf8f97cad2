"""What a harvest tells while it works, and that a bad listener does not disturb it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from harvest_dagster.harvest.leader_events import (
    Event,
    LeaderAcquired,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
)
from harvest_dagster.ledger import lease as leases
from tests.support.account import judge, read
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartHarvest

TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name LIKE 'harvest %%mark' AND datname = current_database()
"""


def test_acquired_and_revoked(place: Place, start_harvest: StartHarvest) -> None:
    """A leader is told of its shard, epoch and id, and at its stop that it leads no more."""
    running = start_harvest(place.config())
    until(lambda: running.told)
    ((epoch, leader),) = place.rows("SELECT epoch, leader_id FROM harvest.lease")
    running.harvest.stop(20)
    assert running.told == [LeaderAcquired(0, epoch, leader), LeaderRevoked(0)]


def test_refreshed(place: Place, start_harvest: StartHarvest) -> None:
    """A leader that had to mark again is told of its new epoch and id."""
    running = start_harvest(place.config())
    place.put(100)
    place.drained()
    place.rows(TERMINATE, ())
    until(lambda: len(running.told) == 2)
    ((epoch, leader),) = place.rows("SELECT epoch, leader_id FROM harvest.lease")
    assert running.told[1] == LeaderRefreshed(0, epoch, leader)
    until(lambda: running.harvest.leader_id() == leader)


def test_fenced(place: Place, start_harvest: StartHarvest) -> None:
    """Whose lease was taken is told that it is fenced; Kafka has not changed its mind: it leads."""
    running = start_harvest(place.config())
    until(running.harvest.is_leader)
    with place.connect() as stranger:
        taken = leases.acquire(stranger, place.name, 0, "a stranger", 60)
    until(lambda: len(running.told) == 3)
    assert running.kinds() == ["LeaderAcquired", "LeaderFenced", "LeaderAcquired"]
    again = running.told[2]
    assert isinstance(again, LeaderAcquired)
    assert again.epoch > taken.epoch
    place.put(10)
    place.drained()


def test_meter(place: Place, start_harvest: StartHarvest) -> None:
    """Figures are told now and then, and add up."""
    running = start_harvest(place.config(limits={"min_metrics_interval": 0.1}))
    place.put(500)
    place.drained()
    until(lambda: running.figures and running.figures[-1].stats.purged == 500)
    stats = running.figures[-1].stats
    until(lambda: running.figures[-1].stats.in_flight == 0)
    assert (stats.shard, stats.published, stats.remarked, stats.parked) == (0, 500, 0, 0)
    assert (running.figures[-1].stats.backlog, stats.oldest_seconds) == (0, 0.0)


def test_types(place: Place, start_harvest: StartHarvest) -> None:
    """Events have the fields that they are declared with."""
    running = start_harvest(place.config(limits={"min_metrics_interval": 0.1}))
    until(lambda: running.told and running.figures)
    event, meter = running.told[0], running.figures[0]
    assert isinstance(event, LeaderAcquired)
    assert isinstance(event.leader_id, UUID)
    assert isinstance(meter, MeterRead)
    assert isinstance(meter.stats.rate, float)


def test_a_handler_that_raises(place: Place, start_harvest: StartHarvest) -> None:
    """A handler that raises is told of the next event all the same, and costs nothing."""

    def fails(_event: Event) -> None:
        raise LookupError("a bug")

    running = start_harvest(place.config(), fails)
    place.put(1000)
    place.drained()
    running.harvest.stop(20)
    assert running.kinds() == ["LeaderAcquired", "LeaderRevoked"]
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


@pytest.mark.parametrize("seconds", [1.0])
def test_a_handler_that_blocks(place: Place, start_harvest: StartHarvest, seconds: float) -> None:
    """A handler that blocks costs no record, and at the end no more than the drain's time."""
    forever = threading.Event()
    config = place.config(limits={"drain_timeout": seconds})
    running = start_harvest(config, lambda _event: forever.wait() and None)
    place.put(1000)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    stopping = threading.Thread(target=running.harvest.stop, args=(30,))
    stopping.start()
    until(lambda: place.kinds("revoked", "fenced"), seconds + 5)
    forever.set()
    stopping.join()
    assert place.kinds("tour_ended") == ["tour_ended"]
