"""What a candidate of the bench adds to its engine's work is there, in Kafka and in its journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.support.place import PARTITIONS, Place
from tests.support.waiting import until
from tests.torture.candidates import Candidates
from tests.torture.ledger import create
from tests.torture.proof import epoch_of

DAY = 86_400.0


@pytest.fixture
def candidates(place: Place, tmp_path: Path) -> Iterator[Candidates]:
    """One candidate, which leads."""
    with place.connect() as connection:
        create(connection, range(1, 2))
    candidates = Candidates(place, {"one": place.settings()}, None, tmp_path)
    candidates.start_all()
    until(lambda: candidates.leader() == "one", what="it leads")
    yield candidates
    candidates.kill_all()


def polled(place: Place) -> list[Any]:
    """Read five messages."""
    consumer = Consumer({**place.kafka, "group.id": place.topic})
    partitions = range(PARTITIONS)
    consumer.assign(
        [TopicPartition(place.topic, number, OFFSET_BEGINNING) for number in partitions]
    )
    found: list[Any] = []

    def are_all_there() -> bool:
        found.extend(consumer.consume(5, 0.1))
        return len(found) == 5

    until(are_all_there, what="all are there")
    consumer.close()
    return found


def test_messages_are_stamped(place: Place, candidates: Candidates) -> None:
    """Each tells its epoch, and has the time of a clock that was put back."""
    candidates.move_clock("one", -DAY)
    place.put(1)
    place.drained()
    place.put(4)
    found = polled(place)
    assert {epoch_of(message) for message in found} == {1}
    oldest = min(message.timestamp()[1] for message in found) / 1000
    assert time.time() - oldest == pytest.approx(DAY, abs=60)
    assert not place.rows("SELECT FROM torture.stale")


def test_trust_is_written_down(candidates: Candidates) -> None:
    """A term is there while it is trusted, and ends when the candidate is stopped."""
    until(candidates.trust, what="its term is there")  # the row of its lease comes before
    (term,) = candidates.trust()
    until(lambda: candidates.trust()[0].end > term.end, what="it is trusted for longer")
    assert candidates.stop_all() == []
    (ended,) = candidates.trust()
    assert term.begin == ended.begin < ended.end
