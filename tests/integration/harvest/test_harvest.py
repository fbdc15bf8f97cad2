"""The harvest that a program embeds: its life, its figures, and what it can't be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harvest_dagster.election.candidate import State
from harvest_dagster.errors import HarvestStateError, KafkaError
from harvest_dagster.harvest.harvest import Harvest
from tests.support.account import judge, read
from tests.support.place import Place
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.running import StartHarvest

LINGERS = {"producer_kafka": {"linger.ms": 60_000}, "delivery": "at_least_once"}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_it_harvests(place: Place, start_harvest: StartHarvest, delivery: str) -> None:
    """A harvest that is elected drains the backlog, and goes on with what comes."""
    place.put(1000)
    start_harvest(place.config(delivery=delivery))
    place.drained()
    place.put(1000)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_states(place: Place) -> None:
    """A harvest is created, running, and in the end stopped."""
    harvest = Harvest(place.config())
    states = [harvest.state]
    harvest.start()
    states.append(harvest.state)
    harvest.stop(20)
    assert [*states, harvest.state] == [State.CREATED, State.RUNNING, State.STOPPED]
    assert harvest.wait(0)


def test_misuse(place: Place) -> None:
    """What does not fit its state is refused, and says what to do."""
    harvest = Harvest(place.config())
    with pytest.raises(HarvestStateError, match="has not been started"):
        harvest.stop()
    harvest.start()
    with pytest.raises(HarvestStateError, match="is running: make a new one"):
        harvest.start()
    with pytest.raises(HarvestStateError, match="before the harvest starts"):
        harvest.set_event_handler(print)
    assert not harvest.wait(0.01)
    harvest.stop(20)
    with pytest.raises(HarvestStateError, match="is stopped: make a new one"):
        harvest.start()


def test_stopped_twice(place: Place) -> None:
    """To stop what is stopped does nothing."""
    harvest = Harvest(place.config())
    harvest.start()
    harvest.stop(20)
    harvest.stop(20)
    assert harvest.state is State.STOPPED


def test_before_and_after(place: Place, start_harvest: StartHarvest) -> None:
    """Only who is elected leads, under the id that the lease has; and only until it stops."""
    idle = Harvest(place.config())
    assert (idle.is_leader(), idle.leader_id(), idle.in_flight_records) == (False, None, 0)
    harvest = start_harvest(place.config()).harvest
    until(harvest.is_leader)
    ((leader,),) = place.rows("SELECT leader_id FROM harvest.lease")
    assert (harvest.leader_id(), harvest.shards) == (leader, [0])
    harvest.stop(20)
    assert (harvest.is_leader(), harvest.leader_id(), harvest.shards) == (False, None, [])


def test_in_flight(place: Place, start_harvest: StartHarvest) -> None:
    """What is in flight is told as a number of records, and as their topics and keys."""
    place.put(40, keys=7)
    harvest = start_harvest(place.config(**LINGERS, limits={"drain_timeout": 1})).harvest
    until(lambda: harvest.in_flight_records == 40)
    assert harvest.in_flight_record_keys == {(place.topic, b"k%d" % n) for n in range(7)}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_stop_drains(place: Place, start_harvest: StartHarvest, delivery: str) -> None:
    """After a stop in the midst of work, no claim is left: what was marked went all the way."""
    place.put(10_000)
    harvest = start_harvest(place.config(delivery=delivery)).harvest
    until(lambda: harvest.totals().purged > 100)
    harvest.stop(20)
    assert place.rows("SELECT ids FROM harvest.claim") == []
    published = place.stashed[: 10_000 - place.waiting()]
    judge(published, read(place.kafka, place.topic), "exactly_once")
    assert place.kinds("tour_started", "tour_ended", "revoked") == [
        "tour_started",
        "tour_ended",
        "revoked",
    ]


def test_a_drain_is_bounded(place: Place, start_harvest: StartHarvest) -> None:
    """What can't settle is cut off when the drain's time is up, and nothing is lost."""
    place.put(10, keys=10)
    stuck = start_harvest(place.config(**LINGERS, limits={"drain_timeout": 1})).harvest
    until(lambda: stuck.in_flight_records == 10)
    stuck.stop(20)
    assert place.waiting() == 10
    start_harvest(place.config(delivery="at_least_once"))
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "at_least_once")


def test_two_outboxes(place: Place, start_harvest: StartHarvest, database: str) -> None:
    """One process harvests two outboxes at once, each to its own reader."""
    other = Place(database, place.kafka)
    place.put(1000)
    other.put(1000, outbox="goharvest_outbox")
    harvests = [
        start_harvest(place.config()),
        start_harvest(other.config(outbox="goharvest_outbox")),
    ]
    place.drained()
    other.drained(outbox="goharvest_outbox")
    for each in (place, other):
        judge(each.stashed, read(each.kafka, each.topic), "exactly_once")
    assert [each.harvest.totals().published for each in harvests] == [1000, 1000]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("outbox", ["outbox", "goharvest_outbox"])
def test_shards(place: Place, start_harvest: StartHarvest, delivery: str, outbox: str) -> None:
    """Two harvests share two shards: each does its part, all is published once and in order."""
    config = place.config(shards=2, delivery=delivery, outbox=outbox)
    both = [start_harvest(config).harvest for _ in range(2)]
    until(lambda: sorted(shard for each in both for shard in each.shards) == [0, 1])
    until(lambda: all(len(each.shards) == 1 for each in both))
    for _ in range(5):
        place.put(400, outbox=outbox)
    place.drained(outbox=outbox)
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    done = [each.totals(each.shards[0]).purged for each in both]
    assert min(done) > 0
    assert sum(done) == 2000


def test_one_harvest_of_many_shards(place: Place, start_harvest: StartHarvest) -> None:
    """A harvest that is alone takes every shard; records without a key are shared out too."""
    place.stash(message._replace(key=None) for message in place.put(500))
    start_harvest(place.config(shards=4))
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_the_next_takes_over(place: Place, start_harvest: StartHarvest) -> None:
    """When the leader stops, the one who waits leads, with a higher epoch, and harvests on."""
    first, second = (start_harvest(place.config()) for _ in range(2))
    until(lambda: first.harvest.is_leader() or second.harvest.is_leader())
    leader, other = (first, second) if first.harvest.is_leader() else (second, first)
    place.put(500)
    place.drained()
    leader.harvest.stop(20)
    place.put(500)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    assert place.rows("SELECT epoch FROM harvest.lease") == [(2,)]
    assert other.harvest.totals().published == 500


@pytest.mark.parametrize("ask", [lambda own: own.wait(10), lambda own: own.stop(10)])
def test_what_ends_a_candidate_ends_the_harvest(place: Place, ask: Any) -> None:
    """A leader topic that is too narrow is told to whoever waits, and to whoever stops."""
    place.new_topic(f"{place.name}.neli", partitions=1)
    harvest = Harvest(place.config(shards=2))
    harvest.start()
    until(lambda: harvest.state is State.STOPPED)
    with pytest.raises(KafkaError, match="has 1 partition, and 2 are needed"):
        ask(harvest)
    until(lambda: harvest.state is State.STOPPED, 10)
