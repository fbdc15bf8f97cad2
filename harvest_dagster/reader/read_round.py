"""A round: from the store's positions on, batch by batch, until something ends it.

    look at the topics ──> take: fences, positions, producers ──> a batch ─┐
                                                        ▲                  │
                                                        └──────────────────┘
    a batch: gather and apply in the store's transaction ──> are the topics still the same?
             ──> move under the fences ──> commit ──> the group's offsets follow

Whatever fails, the round ends, what was applied is rolled back, and the next one goes on from what
the store has: also where it is not known whether a commit was done, since taking the fence waits
for it. One thread, which blocks on Kafka for fractions of a second, and on PostgreSQL and `apply`
for as long as they take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import psycopg

from harvest_dagster.errors import FencedError, KafkaError, ReaderError
from harvest_dagster.reader.applying import apply_alone, apply_whole
from harvest_dagster.reader.gathering import Counts, Gathering
from harvest_dagster.reader.intake import Intake, OutsideError, SecondLook
from harvest_dagster.reader.positions import Partition, Position, Taken
from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import Apply
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.received import ReceivedMessage, partition_of, sighted
from harvest_dagster.reader.source_topics import SourceTopic, SourceTopics
from harvest_dagster.sequence.sequencer import Sequencer, Sighting

_LOOK_SECONDS = 5.0
"""How often the topics are looked at while nothing is to be committed."""
_TELL_SECONDS = 0.5
_FORGET_SECONDS = 60.0
_SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class Progress:
    """What was done so far, and what is so just now; any thread may read it."""

    applied: int = 0
    read: int = 0
    doubles: int = 0
    replayed: int = 0
    batches: int = 0
    lag: int = 0
    open_spans: int = 0

    def add(self, counts: Counts) -> None:
        """Add what a batch came to, once it is committed."""
        self.applied += counts.applied
        self.read += counts.read
        self.doubles += counts.doubles
        self.batches += counts.read > 0


class Control:
    """What may end a round from outside."""

    def __init__(self, trusted: Callable[[], bool]) -> None:
        self._trusted = trusted
        self.ending = False
        self.aborted = False

    def goes_on(self) -> bool:
        """Return whether more is to be read."""
        return not self.ending

    def check(self) -> None:
        """Raise a FencedError where nothing more may be written."""
        if self.aborted or not self._trusted():
            raise FencedError("the lease was lost")


@dataclass(slots=True)
class Timer:
    """Says when so many seconds have passed."""

    at: float = field(default_factory=time.monotonic)

    def is_older(self, seconds: float) -> bool:
        """Return whether so much time has passed since it was set."""
        return time.monotonic() - self.at >= seconds

    def set(self) -> None:
        """Count from now on."""
        self.at = time.monotonic()


class ReadRound:
    """Reads the partitions of one shard; made for one round, and run once."""

    def __init__(
        self,
        config: ReaderConfig,
        store: PostgresStore,
        apply: Apply,
        shard: int,
        control: Control,
        progress: Progress,
    ) -> None:
        self._config, self._store, self._apply, self._shard = config, store, apply, shard
        self._control, self._progress = control, progress
        self._topics = SourceTopics(config.kafka)
        self._second_look = SecondLook(config.kafka, config.group)
        self._looked, self._moved = Timer(), Timer()
        self._told, self._forgot = Timer(0), Timer(0)  # of a round's first batch, at once
        self._is_wider = False
        self._followed = dict[Partition, int]()
        self.alone = 0
        """How many messages are applied one by one."""
        self.yielded = 0
        """How many messages the batch that failed had handed out."""

    def run(self, found: Callable[[int], None]) -> None:
        """Read until it is told to end, or a topic is wider; `found` hears how many partitions."""
        seen = self._topics.look(self._config.topics)
        with self._store.connect(f"{self._config.name} read") as connection:
            self._store.prepare(connection)
            self._taken = self._take(connection, seen)
            found(len(self._taken.positions))
            self._seen = seen
            self._offsets = {p.place: p.offset for p in self._taken.positions.values()}
            self._sequencer = Sequencer(self._reread, self._config.ring, self._taken.known)
            self._intake = Intake(self._config.kafka, self._config.group, self._offsets)
            with closing(self._intake), closing(self._second_look):
                self._read_all(connection)

    def _take(self, connection: psycopg.Connection[Any], seen: Mapping[str, SourceTopic]) -> Taken:
        config = self._config
        known = self._store.positions(connection, config.name)
        for position in known:
            _refuse_another(position, seen)
        topics = {position.topic for position in known}
        first = [place for t in seen.values() if t.name not in topics for place in t.places]
        offsets = dict.fromkeys((place for t in seen.values() for place in t.places), 0)
        offsets |= self._topics.lows(first)
        new = [Position(*place, seen[place[0]].id, at, 0, 0) for place, at in offsets.items()]
        mine = sorted(place for place in offsets if place[1] % config.shards == self._shard)
        taken = self._store.take(connection, config.name, new, mine)
        for position in taken.positions.values():
            _refuse_another(position, seen)
        return taken

    def _read_all(self, connection: psycopg.Connection[Any]) -> None:
        while self._control.goes_on() and not self._is_wider:
            gathering = Gathering(
                self._config, self._intake, self._sequencer, self._control.goes_on
            )
            try:
                self._read_batch(connection, gathering)
            except Exception:
                self.yielded = gathering.counts.applied
                if gathering.failure is not None:  # whatever apply has made of it
                    raise gathering.failure from None
                raise
            if gathering.stop is not None:
                raise self._explained(gathering.stop)
            self._see_to_the_rest()
        self._tell()

    def _read_batch(self, connection: psycopg.Connection[Any], gathering: Gathering) -> None:
        first = next(gathering.messages, None)
        if first is not None:
            self._tell_now_and_then()  # before apply, which may take long
            with connection.transaction():
                self._apply_to(connection, chain([first], gathering.messages))
                if gathering.failure is not None:
                    raise gathering.failure
                self._move(connection, gathering.counts)
            self.alone = max(0, self.alone - gathering.counts.applied)
        elif self._sequencer.has_moved and (
            gathering.stop is not None or self._moved.is_older(self._config.batch_seconds)
        ):
            with connection.transaction():
                self._move(connection, gathering.counts)
        self._progress.add(gathering.counts)

    def _apply_to(
        self, connection: psycopg.Connection[Any], messages: Iterator[ReceivedMessage]
    ) -> None:
        apply = apply_alone if self.alone else apply_whole
        apply(self._apply, messages, connection)

    def _move(self, connection: psycopg.Connection[Any], counts: Counts) -> None:
        self._look()  # behind the last record, so that none of them is another topic's
        self._control.check()
        name, changes = self._config.name, self._sequencer.changes()
        self._store.move(connection, name, self._taken, changes, counts.epochs)
        if self._forgot.is_older(_FORGET_SECONDS):
            gone = self._sequencer.forget(int(self._config.horizon * _SECOND_NS))
            self._store.forget(connection, name, gone)
            self._forgot.set()
        self._offsets |= {partition_of(log): each.offset for log, each in changes.items()}
        self._moved.set()

    def _see_to_the_rest(self) -> None:
        if self._looked.is_older(_LOOK_SECONDS):
            self._look()
        self._tell_now_and_then()

    def _tell_now_and_then(self) -> None:
        if self._told.is_older(_TELL_SECONDS):
            self._tell()

    def _tell(self) -> None:
        self._progress.lag = self._intake.lag(self._offsets)
        self._progress.open_spans = self._sequencer.open_spans
        behind = {p: at for p, at in self._offsets.items() if self._followed.get(p) != at}
        self._intake.follow(behind)
        self._followed |= behind
        self._told.set()

    def _look(self) -> None:
        """Look whether the topics are those that are read: an offset means nothing in another."""
        seen = self._topics.look(self._config.topics)
        for position in self._taken.positions.values():
            _refuse_another(position, seen)
        self._is_wider = any(t.partitions > self._seen[t.name].partitions for t in seen.values())
        self._looked.set()

    def _reread(self, log: str, begin: int, end: int) -> Iterator[Sighting]:
        for record in self._second_look.read(partition_of(log), begin, end):
            self._progress.replayed += 1
            yield sighted(record)

    def _explained(self, stop: ReaderError | OutsideError) -> Exception:
        """Return what to say of what keeps the reader from going on."""
        if isinstance(stop, ReaderError):
            return stop
        self._look()
        topic, partition = stop.place
        at, (low, high) = self._offsets[stop.place], self._topics.bounds(stop.place)
        if low <= at <= high:
            return KafkaError(f"Kafka did not give {topic}, partition {partition}, from {at} on")
        gone = f"{at} to {low - 1} are gone" if at < low else f"{high} to {at - 1} are gone again"
        return ReaderError(
            f"{topic}, partition {partition}: the offsets {gone}, and what stood there may be lost;"
            f" Kafka has {low} to {high - 1}: go on there by `harvest reader reset --topic {topic}"
            f" --partition {partition} --to earliest`"
        )


def _refuse_another(position: Position, seen: Mapping[str, SourceTopic]) -> None:
    topic = seen.get(position.topic)
    if topic is not None and topic.id != position.topic_id:
        raise ReaderError(
            f"the topic {topic.name} was deleted and made anew: what the old one had behind offset"
            f" {position.offset} of partition {position.partition} may be lost; read the new one by"
            f" `harvest reader reset --topic {topic.name} --to earliest`"
        )
