"""A topic that is not there holds its own records, and no others."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from harvest_dagster import Message
from harvest_dagster.errors import ClockError
from tests.support.account import judge, read
from tests.support.late_end import late_ends
from tests.support.waiting import until
from tests.torture.proxy import HOST

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour


def mixed(place: Place, missing: str) -> tuple[list[Message], list[Message]]:
    """Stash for a topic that is missing and for one that is there, in turn, with the same keys."""
    rows = place.put(300, keys=10)
    wait = [Message(missing, m.key, m.value) for m in rows]
    pairs = zip(wait, [m._replace(value=b"2-%d" % n) for n, m in enumerate(rows)], strict=True)
    both = place.stash(message for pair in pairs for message in pair)
    return rows + both[1::2], wait


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_missing(place: Place, start_tour: StartTour, delivery: str) -> None:
    """Records of a topic that is missing wait, others flow; nothing is parked."""
    flow, wait = mixed(place, f"topic-{uuid.uuid4().hex}")
    start_tour(place.config(delivery=delivery), place.lease())
    until(lambda: place.waiting() == len(wait))
    judge(flow, read(place.kafka, place.topic), "exactly_once")
    assert place.rows("SELECT id FROM harvest.parked") == []


def test_sweeps_go_past_it(place: Place, start_tour: StartTour) -> None:
    """What each sweep meets, and can't send, keeps no later sweep from its end."""
    place.stash([Message(f"topic-{uuid.uuid4().hex}", "k", "waits")])
    start_tour(place.config(), place.lease(), sweep_seconds=0.2)
    for _ in range(5):
        place.put(20)
        until(lambda: place.waiting() == 1)
        place.goes_round()


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_created_later(place: Place, start_tour: StartTour, delivery: str) -> None:
    """When the topic is created, its records go out by themselves, in order."""
    missing = f"topic-{uuid.uuid4().hex}"
    _, wait = mixed(place, missing)
    start_tour(place.config(delivery=delivery), place.lease())
    until(lambda: place.waiting() == len(wait))
    place.new_topic(missing)
    place.stash(Message(missing, m.key, f"3-{n}") for n, m in enumerate(wait))
    place.drained()
    own = [message for message in place.stashed if message.topic == missing]
    judge(own, read(place.kafka, missing), "exactly_once")
    place.drop_topic(missing)


def test_all_at_once(place: Place, start_tour: StartTour) -> None:
    """Many topics are harvested in one go."""
    topics = [place.topic, *(place.new_topic(partitions=1) for _ in range(9))]
    place.stash(Message(topics[n % 10], f"k{n % 7}", str(n)) for n in range(2000))
    start_tour(place.config(), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, *topics), "exactly_once")
    for topic in topics[1:]:
        place.drop_topic(topic)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_a_clock_that_kafka_refuses(place: Place, start_tour: StartTour, delivery: str) -> None:
    """If Kafka refuses the time of messages, which is the leader's, the leader ends and says so.

    This topic takes no message that was longer on its way than half of what these are. A shorter
    time won't do: Kafka's own records, with which it ends a transaction, must be in time for it.
    """
    strict = place.new_topic(message_timestamp_before_max_ms="300")
    place.stash(Message(strict, "k", str(number)) for number in range(100))
    port = int(str(place.kafka["bootstrap.servers"]).rpartition(":")[2])
    with late_ends(port, slow=0.6) as proxy:
        kafka = {**place.kafka, "bootstrap.servers": f"{HOST}:{proxy.port}"}
        running = start_tour(place.config(delivery=delivery, base_kafka=kafka), place.lease())
        running.join()
    assert isinstance(running.failure, ClockError)
    assert "clock" in str(running.failure)
    assert place.waiting() == 100
