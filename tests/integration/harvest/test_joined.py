"""What is marked while a small transaction waits for Kafka goes along with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from harvest_dagster.harvest.batch import Batch, Window
from harvest_dagster.harvest.clients import Batching, Clients
from harvest_dagster.harvest.publish_exactly_once import ExactlyOncePublisher
from harvest_dagster.harvest.recover import committed_batch
from harvest_dagster.harvest.stage import Round
from tests.support.account import read

if TYPE_CHECKING:
    from tests.support.place import Place

IDENTITY = "this database"


def batch(topic: str, number: int, records: int) -> Batch:
    """Make a batch for a topic of one partition."""
    value = f"{number}".encode()
    return Batch(
        number, [(n, topic, b"k", value, [], [], 0, None) for n in range(records)], records
    )


def publish(place: Place, first: Batch, second: Batch) -> int | None:
    """Publish a batch, and one that comes right after it; tell which number is committed."""
    place.new_topic(f"{place.name}.neli", partitions=1)
    where = TopicPartition(f"{place.name}.neli", 0, -1, IDENTITY)
    later = [second, None]

    def trusted() -> bool:
        """Be asked before the first transaction begins, when its batch has been taken."""
        while later:
            round_.batches.put(later.pop(0))
        return True

    round_ = Round(Window(5000, 1_000_000), trusted)
    round_.batches.put(first)
    clients = Clients.open(place.config(), 0, Batching.LARGE)
    publisher = ExactlyOncePublisher(clients, where, 0, careful=False)
    publisher.run(round_)
    assert [round_.settled.get() for _ in range(3)] == [first, second, None]
    assert publisher.published == len(first.rows) + len(second.rows)
    committed = committed_batch(clients.group, where)
    clients.close()
    return committed


def transactions(place: Place, topic: str) -> int:
    """Tell how many transactions a partition has seen: each leaves a mark of its end there."""
    consumer = Consumer({**place.kafka, "group.id": "nobody"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
    consumer.close()
    return int(end) - len(read(place.kafka, topic))


@pytest.mark.parametrize(
    ("records", "made"), [pytest.param(3, 1, id="few"), pytest.param(501, 2, id="many")]
)
def test_who_comes_while_a_transaction_is_made(place: Place, records: int, made: int) -> None:
    """Few records are joined, many are not held up; the last batch's number is committed."""
    topic = place.new_topic(partitions=1)
    first, second = batch(topic, 1, records), batch(topic, 2, 2)
    assert publish(place, first, second) == 2
    assert [one.value for one in read(place.kafka, topic)] == [b"1"] * records + [b"2"] * 2
    assert transactions(place, topic) == made
