"""Reads topics to their ends, and judges them against what was stashed."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka import Message as Polled

from harvest_dagster import Message
from harvest_dagster.sequence import uuids
from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.uuids import HEADER, LENGTH, NIL
from tests.support.waiting import until

COMMITTED, PLAIN = "read_committed", "read_uncommitted"
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_READ_SECONDS = 30.0
_POLL_SECONDS = 0.05
_MARK_SECONDS = 2.0

Lanes = dict[tuple[str, bytes], list[bytes | None]]


class Received(NamedTuple):
    """A message as a reader got it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int
    identity: bytes | None

    @classmethod
    def of(cls, polled: Polled) -> Received:
        """Take what the client gave."""
        headers: Any = tuple(polled.headers() or ())
        identity = None
        if headers and headers[-1][0] == HEADER and len(headers[-1][1]) == LENGTH:
            *headers, (_, identity) = headers
        topic, partition = polled.topic() or "", polled.partition() or 0
        return cls(topic, polled.key(), polled.value(), tuple(headers), partition, identity)


def read(kafka: dict[str, Any], *topics: str, isolation: str = COMMITTED) -> list[Received]:
    """Read topics to their ends."""
    consumer, places = _consumer(kafka, topics, isolation)
    if isolation == COMMITTED:
        _await_marks(kafka, consumer, places)
    found: list[Received] = []
    deadline = time.monotonic() + _READ_SECONDS
    while places:
        assert time.monotonic() < deadline, f"no end within {_READ_SECONDS} s: {places}"
        for message in consumer.consume(1000, _POLL_SECONDS):
            error = message.error()
            if error is None:
                found.append(Received.of(message))
            elif error.code() == _EOF:
                places.discard((message.topic() or "", message.partition() or 0))
    consumer.close()
    return found


def _await_marks(
    kafka: dict[str, Any], consumer: Consumer, places: Iterable[tuple[str, int]]
) -> None:
    """Wait a moment for the marks of transactions that were committed just now.

    Kafka says that one is committed before readers may go beyond it. One that stays open is no
    reason to wait for long.
    """
    plain = Consumer({**kafka, "group.id": "account", "isolation.level": PLAIN})
    deadline = time.monotonic() + _MARK_SECONDS
    for place in (TopicPartition(*each) for each in places):
        while time.monotonic() < deadline and _end(consumer, place) < _end(plain, place):
            time.sleep(_POLL_SECONDS)
    plain.close()


def _end(consumer: Consumer, place: TopicPartition) -> int:
    return int(consumer.get_watermark_offsets(place, 10)[1])


class Reader:
    """Reads along while others write, from the beginning, as committed."""

    def __init__(self, kafka: dict[str, Any], *topics: str) -> None:
        self._consumer, _ = _consumer(kafka, topics, COMMITTED)
        self.found: list[Received] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def caught_up(self, messages: int, seconds: float = _READ_SECONDS) -> list[Received]:
        """Wait until so many different messages are read, and give all that was."""

        def are_read() -> bool:
            return len({_content(message) for message in list(self.found)}) >= messages

        until(are_read, seconds, f"{messages} are read", _POLL_SECONDS)
        return list(self.found)

    def stop(self) -> list[Received]:
        """End, and give what was read."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()
        return self.found

    def _run(self) -> None:
        while not self._stop.is_set():
            polled = self._consumer.consume(1000, _POLL_SECONDS)
            self.found += [Received.of(message) for message in polled if message.error() is None]


def lanes(messages: Iterable[Message | Received]) -> Lanes:
    """Sort values by topic and key, in their order; messages without a key have none."""
    found: Lanes = defaultdict(list)
    for message in messages:
        if message.key is not None:
            found[message.topic, message.key].append(message.value)
    return found


def counted(found: Iterable[Received]) -> list[Received]:
    """Leave out what a reader that knows identities takes for doubles."""
    sequencer = Sequencer(lambda *_: [])
    kept = []
    for at, message in enumerate(found):
        log = f"{message.topic}/{message.partition}"
        seen = Sighting(log, *uuids.read(message.identity or NIL), at, at + 1, message)
        kept += [one.body for one in sequencer.see(seen)]
    return kept


def judge(stashed: Iterable[Message], found: Iterable[Received], delivery: str) -> None:
    """Assert that all that was stashed was published, in order, and once if that was promised."""
    given, got = list(stashed), list(found)
    if delivery == "sequenced":
        assert all(message.identity for message in got)
        got, delivery = counted(got), "exactly_once"
    assert {_content(m) for m in given} == {_content(m) for m in got}
    if delivery == "exactly_once":
        assert Counter(map(_content, given)) == Counter(map(_content, got))
    judge_order(given, got, delivery)


def judge_order(stashed: Iterable[Message], found: Iterable[Received], delivery: str) -> None:
    """Assert that each key's messages are a beginning of what was stashed, in order."""
    given = lanes(stashed)
    if delivery == "sequenced":
        found, delivery = counted(found), "exactly_once"
    for lane, values in lanes(found).items():
        seen = values if delivery == "exactly_once" else [value for value, _ in groupby(values)]
        assert seen == given[lane][: len(seen)], f"{lane} is out of order"


def _content(message: Message | Received) -> tuple[Any, ...]:
    return (message.topic, message.key, message.value, tuple(message.headers))


def _consumer(
    kafka: dict[str, Any], topics: Iterable[str], isolation: str
) -> tuple[Consumer, set[tuple[str, int]]]:
    settings = {
        "group.id": f"account-{uuid.uuid4().hex}",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**kafka, **settings})
    places = set(_places(consumer, topics))
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
    return consumer, places


def _places(consumer: Consumer, topics: Iterable[str]) -> Iterator[tuple[str, int]]:
    for topic in topics:
        for partition in consumer.list_topics(topic, 10).topics[topic].partitions:
            yield topic, partition
