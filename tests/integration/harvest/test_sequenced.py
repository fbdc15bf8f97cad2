"""The delivery `sequenced`: what was claimed goes out as it was claimed, whoever sends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any, get_args

import pytest
from confluent_kafka import Producer

from harvest_dagster import Message
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.config import Delivery
from harvest_dagster.harvest.placement import Placement, Rule
from harvest_dagster.sequence import ticks, uuids
from harvest_dagster.sequence.uuids import Flags
from tests.support.account import Received, counted, judge, read
from tests.support.place import set_topic
from tests.support.sequenced import GoneLeader
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

SEQUENCED = {"delivery": "sequenced"}
MakeGone = Callable[..., GoneLeader]
PRODUCER = "SELECT producer, last_clock, database FROM harvest.producer"
CLAIMS = "SELECT batch FROM harvest.claim ORDER BY batch"


@pytest.fixture
def gone(place: Place) -> Iterator[MakeGone]:
    """Make leaders that are gone."""
    made: list[GoneLeader] = []

    def make(**how: Any) -> GoneLeader:
        made.append(GoneLeader(place, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


def clocks(found: list[Received]) -> dict[int, list[int]]:
    """Return the clocks of each partition, in the order of its log."""
    seen: dict[int, list[int]] = {}
    for message in found:
        assert message.identity
        seen.setdefault(message.partition, []).append(uuids.read(message.identity).clock)
    return seen


def test_identity(place: Place, start_tour: StartTour) -> None:
    """Each record has a UUID of the outbox's own producer, and its partition's clocks only grow."""
    place.put(500)
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    found = read(place.kafka, place.topic)
    judge(place.stashed, found, "sequenced")
    ((producer, last, database),) = place.rows(PRODUCER)
    assert uuids.is_stable(producer)
    assert {uuids.read(m.identity or b"")[::2] for m in found} == {(producer, Flags.OUTSIDE)}
    every = [clock for each in clocks(found).values() for clock in each]
    assert (len(every), len(set(every)), max(every)) == (500, 500, last)
    assert all(each == sorted(each) for each in clocks(found).values())
    ((now,),) = place.rows("SELECT extract(epoch FROM now())::float8")
    assert abs(ticks.unix_ns(last) / 1e9 - now) < 60
    assert database.endswith(f"/{place.rows('SELECT current_database()')[0][0]}")


@pytest.mark.parametrize("sent", [range(0), range(1, 41), range(1, 101)], ids=len)
def test_a_leader_that_is_gone(
    place: Place, start_tour: StartTour, gone: MakeGone, sent: range
) -> None:
    """Its claims are published as they are, before anything else; what it had sent is a double."""
    place.put(100)
    leader = gone()
    batch = leader.claims(1, 100)
    leader.sends(batch, sent)
    place.put(50)
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    found = read(place.kafka, place.topic)
    judge(place.stashed, found, "sequenced")
    assert len(found) == 150 + len(sent)
    assert place.kinds("remarked") == []
    until(lambda: place.rows(CLAIMS) == [])


def test_one_that_wakes_up(place: Place, start_tour: StartTour, gone: MakeGone) -> None:
    """It may send all that it had claimed, long after its successor, and between its records."""
    place.put(200)
    leader = gone()
    first, second = leader.claims(1, 100), leader.claims(101, 200)
    leader.sends(first, range(1, 31))
    start_tour(place.config(**SEQUENCED), place.lease())
    leader.sends(first)
    place.put(100)
    leader.sends(second)
    place.drained()
    leader.sends(first)
    leader.sends(second)
    judge(place.stashed, read(place.kafka, place.topic), "sequenced")


def test_a_client_whose_queue_is_full(place: Place, start_tour: StartTour) -> None:
    """Records that wait for a partition's first go before those that come meanwhile."""
    place.put(500, keys=100)
    full = {"queue.buffering.max.messages": 2, "linger.ms": 0}
    start_tour(place.config(**SEQUENCED, producer_kafka=full), place.lease())
    place.put(500, keys=100)
    place.drained()
    found = read(place.kafka, place.topic)
    judge(place.stashed, found, "sequenced")
    assert all(each == sorted(each) for each in clocks(found).values())


def test_partitions_that_were_added(place: Place, start_tour: StartTour, gone: MakeGone) -> None:
    """What was claimed before goes where its claim says; what is claimed then, by their number."""
    place.put(100)
    leader = gone()
    batch = leader.claims(1, 100)
    leader.sends(batch, range(1, 51))
    place.widen(place.topic, 7)
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    found = counted(read(place.kafka, place.topic))
    assert {message.partition for message in found} == {*range(4)}
    assert len(found) == 100
    place.put(100, keys=100)
    place.drained()
    later = counted(read(place.kafka, place.topic))
    assert len(later) == 200
    assert {message.partition for message in later} == {*range(7)}


@pytest.mark.parametrize("rule", get_args(Rule))
def test_a_key_is_where_the_client_would_put_it(place: Place, rule: Rule) -> None:
    """By each of the rules, so that a key stays where it is when the delivery changes."""
    keys = [b"k%d" % number for number in range(200)] + [b"", "\u00fc".encode(), b"\xff" * 37]
    producer = Producer({**place.kafka, "partitioner": rule})
    for key in keys:
        producer.produce(place.topic, key, key)
    producer.flush(20)
    placement = Placement(rule, 1, {place.topic: 4})
    found = {m.key: m.partition for m in read(place.kafka, place.topic) if m.key}
    assert found == {key: placement.place(place.topic, key, 0) for key in keys if key}


def test_a_database_that_was_restored(place: Place, start_tour: StartTour) -> None:
    """It has forgotten clocks that were given: from then on it is another producer."""
    place.put(10)
    running = start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    assert running.end() is None
    ((producer, *_),) = place.rows(PRODUCER)
    place.rows("UPDATE harvest.producer SET database = 'elsewhere', last_clock = 0")
    place.put(10)
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "sequenced")
    assert place.rows(PRODUCER)[0][0] != producer


def test_a_clock_of_postgres_that_goes_back(
    place: Place, start_tour: StartTour, gone: MakeGone
) -> None:
    """Clocks only grow, also where PostgreSQL's is behind the last one that was given."""
    place.put(10)
    gone()
    future = ticks.at(4_000_000_000 * 10**9)
    place.rows("UPDATE harvest.producer SET last_clock = %s", (future,))
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "sequenced")
    assert place.rows(PRODUCER)[0][1] == future + 10


def test_a_parked_record_of_a_claim(place: Place, start_tour: StartTour, gone: MakeGone) -> None:
    """It is a hole; put back under its id, it is a new record, with a new clock."""
    place.put(60)
    leader = gone()
    batch = leader.claims(1, 60)
    leader.sends(batch, range(1, 21))
    place.rows("UPDATE harvest.claim SET holes = '{[30,31)}'")
    place.rows("CREATE TABLE aside AS SELECT * FROM outbox WHERE id = 30")
    place.rows("DELETE FROM outbox WHERE id = 30")
    start_tour(place.config(**SEQUENCED), place.lease())
    place.drained()
    place.rows("INSERT INTO outbox OVERRIDING SYSTEM VALUE SELECT * FROM aside")
    place.rows(
        "INSERT INTO harvest.event (name, shard, kind, detail) VALUES (%s, 0, 'requeued', '{}')",
        (place.name,),
    )
    place.drained()
    found = counted(read(place.kafka, place.topic))
    assert sorted(int(m.value or b"") for m in found) == [*range(60)]
    (again,) = [m for m in found if m.value == b"29"]
    assert uuids.read(again.identity or b"").clock > max(batch.clocks)


def test_a_compacted_topic(place: Place, start_tour: StartTour) -> None:
    """It is held, with the reason, until it is compacted no longer; others go on."""
    compacted = place.new_topic(cleanup_policy="compact")
    place.stash([Message(compacted, "k", "v", {"trace": "t"})])
    place.put(20)
    running = start_tour(place.config(**SEQUENCED), place.lease())
    until(lambda: place.waiting() == 1)
    assert "compacted" in running.tour.held[compacted]
    set_topic(place.admin, compacted, "cleanup.policy", "delete")
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic, compacted), "sequenced")


def test_other_shards(place: Place, start_tour: StartTour, gone: MakeGone) -> None:
    """What was claimed under another number of shards must go out under that number."""
    place.put(10)
    gone(shards=2).claims(1, 10)
    running = start_tour(place.config(**SEQUENCED), place.lease())
    running.join()
    assert isinstance(running.failure, HarvestStateError)
    assert "marked by 2 shards, and now there are 1" in str(running.failure)


def test_a_held_topic_does_not_keep_the_delivery(
    place: Place, start_tour: StartTour, gone: MakeGone
) -> None:
    """What was claimed for it waits; all else is delivered as it is asked for now."""
    held = place.new_topic()
    place.stash([Message(held, "k", "v", {"trace": "t"})])
    gone().claims(1, 1)
    place.drop_topic(held)
    running = start_tour(place.config(), place.lease())
    until(lambda: held in running.tour.held)
    place.put(20)
    until(lambda: place.waiting() == 1)
    found = read(place.kafka, place.topic)
    assert [message.identity for message in found] == [None] * 20
    place.new_topic(held)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic, held), "exactly_once")


@pytest.mark.parametrize(("before", "after"), [*permutations(get_args(Delivery), 2)])
def test_the_delivery_may_change(
    place: Place, start_tour: StartTour, before: Delivery, after: Delivery
) -> None:
    """With records in flight, and others waiting: nothing is lost, and no reader sees a double.

    But for those in flight at least once, one of each key, which may come twice.
    """
    limits = {"mark_query_records": 50, "max_in_flight_records": 200}
    place.put(300)
    dies = start_tour(place.config(delivery=before, limits=limits), place.lease())
    until(lambda: dies.tour.totals.marked >= 50)
    dies.tour.abort()
    dies.join()
    place.put(100)
    start_tour(place.config(delivery=after, limits=limits), place.lease())
    place.drained()
    found = counted(read(place.kafka, place.topic))
    promised = "at_least_once" if "at_least_once" in {before, after} else "exactly_once"
    judge(place.stashed, found, promised)
    assert len(found) - len(place.stashed) <= 50
