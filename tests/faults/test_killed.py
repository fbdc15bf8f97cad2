"""Leaders that are killed, one after another, and leaders that sleep through their own end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.support.account import PLAIN, read
from tests.support.deliveries import ALL, DELIVERIES, WITHOUT_IDENTITY
from tests.support.faults import busy, settle
from tests.support.load import Load
from tests.support.waiting import until

if TYPE_CHECKING:
    from harvest_dagster.ledger.lease import Lease
    from tests.support.place import Place
    from tests.support.running import Process, Spawn, StartHarvest, StartTour

LINGERS = {"linger.ms": 900}
CLIENTS = [
    pytest.param({}, id="hurries", marks=pytest.mark.long),
    pytest.param(LINGERS, id="lingers", marks=pytest.mark.long),
    pytest.param({**LINGERS, "delivery.timeout.ms": 50_000}, id="patient"),
]


def killed_at_work(place: Place, spawn: Spawn, settings: dict[str, Any]) -> Process:
    """Start a tour under a new lease, let it publish for a moment, and kill it."""
    before = place.waiting()
    process = spawn(settings, place.lease())
    until(lambda: place.waiting() < before - 100)
    process.kill()
    return process


def at_work(place: Place, lease: Lease) -> None:
    """Wait until a claim of a term is there."""
    query = "SELECT ids FROM harvest.claim WHERE epoch >= %s"
    until(lambda: place.rows(query, (lease.epoch,)))


def outlinger(place: Place) -> None:
    """Wait until a message has lingered in a client, and is there: so have all that went before."""
    client = Producer({**place.kafka, **LINGERS})
    client.produce(place.new_topic(), b"lingered", on_delivery=lambda *_: None)
    until(lambda: client.poll(0))


@pytest.mark.long
@DELIVERIES
def test_tours_killed_in_a_row(
    place: Place, spawn: Spawn, start_tour: StartTour, delivery: str
) -> None:
    """Of leaders that are all killed at work nothing is lost, doubled, or out of order."""
    place.put(5000)
    for _ in range(5):
        killed_at_work(place, spawn, busy(place, delivery))
    start_tour(place.config(delivery=delivery), place.lease())
    settle(place, delivery)


@ALL
def test_a_killed_leader_is_replaced(place: Place, spawn: Spawn, delivery: str) -> None:
    """Of two candidates, the other takes over when the leader is killed under load."""
    place.put(4000)
    processes = [spawn(busy(place, delivery)) for _ in range(2)]
    until(lambda: any(process.find("LeaderAcquired") for process in processes))
    until(lambda: place.waiting() < 3000)
    leader = next(process for process in processes if process.find("LeaderAcquired"))
    leader.kill()
    place.put(500)
    settle(place, delivery)
    assert place.rows("SELECT epoch > 1 FROM harvest.lease") == [(True,)]


@pytest.mark.long
def test_a_blind_sleeper_is_fenced(
    place: Place, spawn: Spawn, start_tour: StartTour, load: Load
) -> None:
    """A leader that slept, and then trusts in nothing but its statements, can do no harm.

    It looks at no clock and hears of no election: PostgreSQL's epoch and Kafka's hold it off.
    """
    sleepers = []
    for _ in range(4):
        lease = place.lease()
        sleeper = spawn(busy(place, "exactly_once"), lease)
        at_work(place, lease)
        sleeper.signal(signal.SIGSTOP)
        sleepers.append(sleeper)
    awake = start_tour(place.config(), place.lease())
    until(lambda: awake.tour.totals.purged)
    for sleeper in sleepers:
        sleeper.signal(signal.SIGCONT)
    until(lambda: all(sleeper.find("fenced") for sleeper in sleepers))
    load.stop()
    settle(place, "exactly_once")


def fallen_asleep(
    place: Place,
    spawn: Spawn,
    start_harvest: StartHarvest,
    delivery: str,
    settings: dict[str, int],
) -> Process:
    """Have a leader fall asleep at work, and another one lead and publish all there is."""
    asleep = spawn(busy(place, delivery, producer_kafka=settings))
    until(lambda: asleep.find("LeaderAcquired"))
    load = Load(place)
    until(lambda: len(place.stashed) > 200 and place.rows("SELECT ids FROM harvest.claim"))
    asleep.signal(signal.SIGSTOP)
    awake = start_harvest(place.config(delivery=delivery))
    until(awake.harvest.is_leader)
    load.stop()
    place.drained()
    return asleep


@WITHOUT_IDENTITY
@pytest.mark.parametrize("settings", CLIENTS)
def test_a_sleeper_wakes(
    place: Place,
    spawn: Spawn,
    start_harvest: StartHarvest,
    delivery: str,
    settings: dict[str, int],
) -> None:
    """A leader that slept until another led puts nothing behind the other's messages, or events.

    With a long `linger.ms` it is certain that messages wait in its client when it falls asleep.
    """
    asleep = fallen_asleep(place, spawn, start_harvest, delivery, settings)
    last, before = place.events()[-1], len(read(place.kafka, place.topic, isolation=PLAIN))
    asleep.signal(signal.SIGCONT)
    until(lambda: asleep.find("LeaderFenced"))
    outlinger(place)
    assert len(read(place.kafka, place.topic, isolation=PLAIN)) == before
    settle(place, delivery)
    since = [event for event in place.events() if event.id > last.id]
    assert [(event.kind, event.epoch) for event in since] == [("fenced", 1)]


@pytest.mark.parametrize("settings", [{}, LINGERS], ids=["hurries", "lingers"])
def test_a_sleeper_wakes_sequenced(
    place: Place, spawn: Spawn, start_harvest: StartHarvest, settings: dict[str, int]
) -> None:
    """What it puts behind the other's messages are doubles by their identity, all of them."""
    asleep = fallen_asleep(place, spawn, start_harvest, "sequenced", settings)
    asleep.signal(signal.SIGCONT)
    until(lambda: asleep.find("LeaderFenced"))
    outlinger(place)
    settle(place, "sequenced")


@pytest.mark.long
def test_a_transaction_that_timed_out(place: Place, spawn: Spawn, load: Load) -> None:
    """A leader whose transaction Kafka gave up while it slept begins it anew."""
    brief = {"transaction.timeout.ms": 1000}
    process = spawn(busy(place, "exactly_once", producer_kafka=brief), place.lease())
    until(lambda: len(place.stashed) > 500 and place.waiting() < 500)

    def sleeps_in_a_transaction() -> bool:
        process.signal(signal.SIGSTOP)
        if place.in_transaction(place.topic):
            return True
        process.signal(signal.SIGCONT)
        return False

    until(sleeps_in_a_transaction)
    until(lambda: not place.in_transaction(place.topic))
    process.signal(signal.SIGCONT)
    load.stop()
    settle(place, "exactly_once")
