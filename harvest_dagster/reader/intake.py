"""Records as they come from Kafka, from given offsets on, and a second look at some of them.

librdkafka's own threads fetch ahead, up to `queued.max.messages.kbytes`; whoever reads here takes
what has come. To ask for many at once would wait until there are so many: so one is waited for,
and those that are there behind it are taken with it. Used by one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ErrorCode

from harvest_dagster.clock import Deadline
from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import KafkaError, ReaderError
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.reader.positions import Partition

_AT_ONCE = 1000
_QUEUE = "queued.max.messages.kbytes"
_QUEUE_KB = 32_768
_SILENT_SECONDS = 30.0
_POLL_SECONDS = 0.5
_END: int = ErrorCode._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin so
_OUTSIDE: int = ErrorCode._AUTO_OFFSET_RESET  # noqa: SLF001
_HASTY = {"fetch.wait.max.ms": 10}
"""Kafka answers one request of a connection after the other: one that waits at a partition's end,
for half a second otherwise, would hold up the next look."""
_OURS = "the reader goes by its store"
_OWNED = {
    "group.id": "it is the reader's name",
    "isolation.level": "a reader takes what is committed, of every delivery",
    "enable.auto.commit": _OURS,
    "enable.auto.offset.store": _OURS,
    "auto.offset.reset": _OURS,
    "enable.partition.eof": _OURS,
}


class PartitionEnd(NamedTuple):
    """The end of a partition, for now: nothing that counts stands before this offset."""

    place: Partition
    offset: int


class OutsideError(Exception):
    """Kafka has no such offset in a partition, or not any more."""

    def __init__(self, place: Partition) -> None:
        super().__init__(f"{place} has no such offset")
        self.place = place


def _consumer(kafka: KafkaConfig, group: str, **more: int) -> Consumer:
    own = {
        "group.id": group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        **({} if _QUEUE in kafka else {_QUEUE: _QUEUE_KB}),
    }
    return make(Consumer, client_settings(kafka, own | more, _OWNED))


class Intake:
    """Takes the records of some partitions, each partition's in its order."""

    def __init__(self, kafka: KafkaConfig, group: str, offsets: Mapping[Partition, int]) -> None:
        self._consumer = _consumer(kafka, group)
        self._come: deque[Any] = deque()
        self._consumer.assign([TopicPartition(*place, at) for place, at in offsets.items()])

    def next(self, wait_seconds: float) -> Any:  # noqa: ANN401 - a Message of confluent's
        """Return the next record, a PartitionEnd, or None where none comes within so many seconds.

        Raise an OutsideError where Kafka does not have the offset that comes next.
        """
        if not self._come:
            first = self._consumer.poll(wait_seconds)
            if first is None:
                return None
            self._come.append(first)
            self._come.extend(self._consumer.consume(_AT_ONCE, 0))
        record = self._come.popleft()
        return record if record.error() is None else _end(record)

    def lag(self, offsets: Mapping[Partition, int]) -> int:
        """Return how many records stand behind offsets, as far as the client has heard."""
        ends = [
            (self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)[1], at)
            for place, at in offsets.items()
        ]
        return sum(max(0, end - at) for end, at in ends)

    def follow(self, offsets: Mapping[Partition, int]) -> None:
        """Have the group's offsets follow, for tools that show a lag; nobody goes by them."""
        if offsets:
            with suppress(KafkaException):
                places = [TopicPartition(*place, at) for place, at in offsets.items()]
                self._consumer.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        """Let go."""
        self._consumer.close()


class SecondLook:
    """Reads again what the ring has lost of a span, with a client of its own."""

    def __init__(self, kafka: KafkaConfig, group: str) -> None:
        self._kafka, self._group = kafka, group
        self._consumer: Consumer | None = None

    def read(self, place: Partition, begin: int, end: int) -> Iterator[Any]:
        """Yield the records from an offset to before another; raise where the first is gone."""
        consumer = self._consumer = self._consumer or _consumer(self._kafka, self._group, **_HASTY)
        consumer.assign([TopicPartition(*place, begin)])
        try:
            yield from _until(consumer, place, begin, end)
        finally:
            consumer.unassign()

    def close(self) -> None:
        """Let go."""
        if self._consumer is not None:
            self._consumer.close()


def _until(consumer: Consumer, place: Partition, begin: int, end: int) -> Iterator[Any]:
    silent, first = Deadline(_SILENT_SECONDS), True
    while not silent.over:
        one: Any = consumer.poll(_POLL_SECONDS)
        records: list[Any] = [] if one is None else [one, *consumer.consume(_AT_ONCE, 0)]
        for record in records:
            silent = Deadline(_SILENT_SECONDS)
            try:
                offset = end if record.error() and _end(record) else record.offset()
            except OutsideError:
                raise _lost(place, begin) from None
            if first and offset != begin:
                raise _lost(place, begin)
            if offset >= end:
                return
            first = False
            yield record
    raise KafkaError(f"{place[0]} could not be read again from {begin}: Kafka fell silent")


def _end(record: Any) -> PartitionEnd:  # noqa: ANN401 - a Message of confluent's
    fault, place = record.error(), (record.topic(), record.partition())
    if fault.code() == _END:
        return PartitionEnd(place, record.offset())
    if fault.code() == _OUTSIDE:
        raise OutsideError(place)
    raise KafkaException(fault)


def _lost(place: Partition, begin: int) -> ReaderError:
    topic, partition = place
    return ReaderError(
        f"{topic}, partition {partition}: messages from offset {begin} on were committed just now,"
        " and Kafka no longer has the first of them: they are lost, unless they can be had from"
        " elsewhere; go on without them by `harvest reader reset`"
    )
