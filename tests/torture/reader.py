"""A reader: folds what it reads into a tally, beside the run or after it.

    follow   reads until the bench says that it is enough, and then to the ends
    whole    reads from the beginning to the ends

It also keeps the time: when each partition delivered what was stashed when, and when none did.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.torture.child import Line, job, listen, say
from tests.torture.lanes import PARTITIONS, TOPIC
from tests.torture.tally import BUCKET_MS, Tally

_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_POLL_SECONDS = 0.1
_MOST = 1000
_STOP_SECONDS = 1.0
_QUIET_SECONDS = 2.0


class Times:
    """When what was stashed at a time was delivered, for each partition; and when nothing was."""

    def __init__(self) -> None:
        self._first: dict[int, dict[int, int]] = {p: {} for p in range(PARTITIONS[TOPIC])}
        self._stops: list[tuple[float, float]] = []
        self._last = 0.0

    def take(self, partition: int, stashed_ms: int, now: float) -> None:
        """Note a message of the first topic."""
        self._first[partition].setdefault(stashed_ms // BUCKET_MS, int(now * 1000))

    def delivered(self, now: float) -> None:
        """Note that something was delivered."""
        if self._last and now - self._last > _STOP_SECONDS:
            self._stops.append((self._last, now))
        self._last = now

    def told(self) -> dict[str, Any]:
        """The times as JSON may have them."""
        return {"first": self._first, "stops": self._stops}


class Reader:
    """Reads every partition from its beginning."""

    def __init__(self, given: Line) -> None:
        self._tally, self._times = Tally(), Times()
        self.ending = threading.Event()
        if given["how"] == "whole":
            self.ending.set()
        self._consumer = Consumer(
            {
                **given["kafka"],
                "group.id": f"torture-{uuid.uuid4().hex}",
                "isolation.level": given["isolation"],
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        places = [(topic, number) for topic, n in PARTITIONS.items() for number in range(n)]
        self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
        self._behind = set(places)
        self._last = time.monotonic()

    def run(self) -> dict[str, Any]:
        """Read to the ends, once that is asked for."""
        while self._behind or not self.ending.is_set() or not self._is_quiet():
            self._take(self._consumer.consume(_MOST, _POLL_SECONDS))
            tally = self._tally
            say("read", messages=tally.messages, faults=tally.doubled + tally.disordered)
        self._consumer.close()
        return self._tally.told() | {"distinct": self._tally.distinct} | self._times.told()

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._last > _QUIET_SECONDS

    def _take(self, polled: list[Any]) -> None:
        now = time.time()
        for message in polled:
            error = message.error()
            if error is None:
                self._behind.add((message.topic(), message.partition()))
                proof = self._tally.take(message)
                if message.topic() == TOPIC:
                    self._times.take(message.partition(), proof.at_ms, now)
                self._last = time.monotonic()
            elif error.code() == _EOF:
                self._behind.discard((message.topic(), message.partition()))
        if any(message.error() is None for message in polled):
            self._times.delivered(now)


def main() -> None:
    """Read, and leave what was found in a file."""
    given = job()
    reader = Reader(given)
    listen(lambda _line: reader.ending.set(), lambda: os._exit(1))
    found = reader.run()
    Path(given["result"]).write_text(json.dumps(found), encoding="utf-8")
    say("ended")


if __name__ == "__main__":
    main()
