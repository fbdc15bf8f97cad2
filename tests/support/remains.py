"""What a leader that is gone may have left: claims, and batches that Kafka knows of or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from harvest_dagster import Message
from harvest_dagster.ledger.lease import Lease

if TYPE_CHECKING:
    from tests.support.place import Place


def claim(place: Place, lease: Lease, batch: int, first: int, last: int, age: float = 0) -> None:
    """Leave a claim of the ids from first to last."""
    place.rows(
        "INSERT INTO harvest.claim VALUES (%s, %s, %s, %s, int8multirange(int8range(%s, %s, '[]')),"
        " %s, now() - make_interval(secs => %s))",
        (lease.name, lease.shard, lease.epoch, batch, first, last, last - first + 1, age),
    )


def producer_of(place: Place, shard: int = 0, turn: int = 0) -> Producer:
    """Make a producer that fences the others of this shard that have this turn."""
    name = f"{place.name}.{shard}.{turn}.harvest"
    producer = Producer({**place.kafka, "transactional.id": name})
    producer.init_transactions(20)
    return producer


def send(producer: Producer, messages: Sequence[Message]) -> None:
    """Send messages in a transaction, which stays open."""
    producer.begin_transaction()
    for message in messages:
        headers: list[Any] = list(message.headers)
        producer.produce(message.topic, message.value, message.key, headers=headers)
    producer.flush(20)


def publish(
    place: Place,
    batch: int,
    messages: Sequence[Message],
    producer: Producer,
    identity: str | None = None,
) -> None:
    """Publish a batch as a leader does: its number is committed along with its messages."""
    send(producer, messages)
    group = Consumer({**place.kafka, "group.id": f"{place.name}.harvest"})
    if identity is None:
        ((identity,),) = place.rows("SELECT id || '/' || current_database() FROM harvest.identity")
    number = [TopicPartition(f"{place.name}.neli", 0, batch, identity)]
    producer.send_offsets_to_transaction(number, group.consumer_group_metadata(), 20)
    producer.commit_transaction(20)
    group.close()
