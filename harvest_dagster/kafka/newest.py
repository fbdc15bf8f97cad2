"""Read what stands at the end of a topic, as a consumer reads what was committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ErrorCode
from confluent_kafka import Message as Received

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import KafkaError
from harvest_dagster.kafka.refusals import explained
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.kafka.topics import width

_ASK_SECONDS = 10.0
_FURTHER, _FARTHEST = 16, 1_000_000
_POLL_SECONDS = 0.5
_END: int = ErrorCode._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin so


@dataclass(frozen=True, slots=True)
class Read:
    """A message as it stands in a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def read_newest(config: Mapping[str, object], topic: str, most: int) -> list[Read]:
    """Return the last messages of each partition, `most` of each at most, in their order.

    Raise a KafkaError where there is no such topic, or Kafka does not answer.
    """
    partitions = width(config, topic, within_seconds=_ASK_SECONDS)
    if partitions is None:
        raise KafkaError(f"there is no topic {topic}: make it with `harvest topic create {topic}`")
    own = {
        "group.id": f"harvest-read-{uuid4().hex}",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer: Consumer = make(Consumer, client_settings(config, own, {}))
    try:
        return _read(consumer, topic, partitions, most)
    except KafkaException as error:
        raise KafkaError(f"the topic {topic} could not be read: {explained(error)}") from None
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partitions: int, most: int) -> list[Read]:
    ends: dict[int, tuple[int, int]] = {}
    for number in range(partitions):
        ends[number] = consumer.get_watermark_offsets(TopicPartition(topic, number), _ASK_SECONDS)
    lacking, back, each = [*ends], 2 * most, dict[int, list[Read]]()
    # The marks of transactions, and what was aborted, have offsets too: who lacks looks further.
    while lacking:
        begins = {number: max(ends[number][0], ends[number][1] - back) for number in lacking}
        consumer.assign([TopicPartition(topic, *begin) for begin in begins.items()])
        each |= _to_their_ends(consumer, topic, len(lacking))
        is_all = {n for n in lacking if begins[n] == ends[n][0] or back >= _FARTHEST}
        lacking = [n for n in lacking if len(each.get(n, ())) < most and n not in is_all]
        back *= _FURTHER
    return [one for number in ends for one in each.get(number, [])[-most:]]


def _to_their_ends(consumer: Consumer, topic: str, partitions: int) -> dict[int, list[Read]]:
    each: dict[int, list[Read]] = {}
    at_end, silent = set[int](), Deadline(_ASK_SECONDS)
    while len(at_end) < partitions:
        if silent.over:
            raise KafkaError(f"the topic {topic} could not be read to its end: Kafka fell silent")
        for message in consumer.consume(1000, _POLL_SECONDS):
            silent = Deadline(_ASK_SECONDS)
            number = _partition(message)
            fault = message.error()
            if fault is None:
                each.setdefault(number, []).append(_as_read(message))
            elif fault.code() == _END:
                at_end.add(number)
            else:
                raise KafkaException(fault)
    return each


def _partition(message: Received) -> int:
    number = message.partition()
    return -1 if number is None else number


def _as_read(message: Received) -> Read:
    headers: Any = message.headers() or []
    return Read(
        str(message.topic()),
        _partition(message),
        message.offset() or 0,
        message.key(),
        message.value(),
        [*headers],
    )
