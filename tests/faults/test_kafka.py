"""Kafka fences the producer, or loses a topic."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from harvest_dagster import Message
from tests.support.account import judge, judge_order, read
from tests.support.faults import BUSY, settle
from tests.support.remains import producer_of, send
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.load import Load
    from tests.support.place import Place
    from tests.support.running import RunningTour, StartTour


OTHERS_SECONDS = 20.0
"""Less than the 30 s for which a client by itself believes in a topic that was deleted."""


def publishes(running: RunningTour) -> None:
    """Wait until some more is published."""
    before = running.tour.totals.published
    until(lambda: running.tour.totals.published > before)


@pytest.mark.parametrize("leaves_open", [False, True])
def test_a_stranger_fences_the_producer(
    place: Place, start_tour: StartTour, load: Load, *, leaves_open: bool
) -> None:
    """A stranger with one of the transactional ids disturbs, and no more, even in a transaction."""
    running = start_tour(place.config(limits=BUSY), place.lease())
    for turn in (0, 1, 0, 1):
        publishes(running)
        before = running.tour.totals.rounds
        stranger = producer_of(place, turn=turn)
        if leaves_open:
            with suppress(KafkaException):  # it may be fenced by then, as it fenced
                send(stranger, [Message(place.topic, "k", "of a stranger")])
        until(lambda: running.tour.totals.rounds > before)  # noqa: B023 - it is called at once
    load.stop()
    settle(place, "exactly_once")


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_a_topic_is_made_anew(
    place: Place, start_tour: StartTour, load: Load, delivery: str
) -> None:
    """After a topic was deleted and made anew, all that is stashed from then on is in it, in order.

    Another topic's records go out meanwhile. (What was in the topic is gone, as it was meant.)
    """
    start_tour(place.config(delivery=delivery, limits=BUSY), place.lease())
    until(lambda: len(place.stashed) > 500)
    place.drop_topic(place.topic)
    other = place.new_topic()
    beside = place.stash(m._replace(topic=other) for m in place.stashed[:100])
    until(lambda: len(read(place.kafka, other)) >= 100, OTHERS_SECONDS)
    place.new_topic(place.topic)
    load.stop()
    first = len(place.stashed)
    place.put(1000)
    place.drained(90)
    found = read(place.kafka, place.topic)
    since = {message.value for message in place.stashed[first:]}
    judge(place.stashed[first:], [m for m in found if m.value in since], delivery)
    assert len({m.value for m in found}) >= 1000
    judge(beside, read(place.kafka, other), delivery)
    lost = {m.value for m in place.stashed} - {m.value for m in found}
    rest = [m for m in place.stashed if m.topic == place.topic and m.value not in lost]
    judge_order(rest, found, delivery)
    assert place.kinds("parked") == []
