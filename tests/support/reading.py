"""Readers at work, what is written for them to read, and what they have made of it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import pytest
from confluent_kafka import Producer

from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.reader import PostgresStore, ReadBatch, ReaderConfig
from harvest_dagster.reader.reading import Reading
from harvest_dagster.sequence.uuids import Flags, made
from tests.support.place import Place
from tests.support.waiting import until

LETTERS = {"C": Flags.CONTINUE, "K": Flags.ACK, "O": Flags.OUTSIDE, "S": Flags.SETTLE}
SEEN = """
    CREATE TABLE IF NOT EXISTS seen (
        id bigserial, topic text, partition int, "offset" bigint, key text, value text
    )
"""
INSERT = 'INSERT INTO seen (topic, partition, "offset", key, value) VALUES (%s, %s, %s, %s, %s)'
Apply = Callable[[ReadBatch], None]


def insert(batch: ReadBatch) -> None:
    """Write each message down."""
    with batch.connection.cursor() as cursor:
        for message in batch.messages:
            place = (message.topic, message.partition, message.offset)
            key, value = (message.key or b"").decode(), (message.value or b"").decode()
            cursor.execute(INSERT, (*place, key, value))


def producer_of(letter: str) -> bytes:
    """Return a producer that is not stable."""
    return b"\x01" + letter.encode() * 5


class Shelf:
    """A topic to read, its writer, and a store with a table of what was read."""

    def __init__(self, place: Place, store_url: str) -> None:
        self.place, self.url, self.topic = place, store_url, place.topic
        self.name = f"reader-{uuid.uuid4().hex}"
        self.store = PostgresStore(store_url)
        self._writer = Producer({**place.kafka, "linger.ms": 0})
        with psycopg.connect(store_url) as connection:
            connection.execute(SEEN)

    def config(self, **changes: Any) -> ReaderConfig:
        """Make a config of a reader of the topic."""
        fields = {
            "name": self.name,
            "topics": (self.topic,),
            "kafka": self.place.kafka,
            "postgres": self.place.postgres,
            **changes,
        }
        return ReaderConfig(**fields)

    def write(self, *written: str, partition: int = 0, topic: str | None = None) -> None:
        """Write records as `A1C`: producer, clock, flags; one that begins with `-` has no UUID."""
        for one in written:
            headers: list[tuple[str, bytes]] = []
            if not one.startswith("-"):
                identity = made(producer_of(one[0]), int(one[1:-1]), LETTERS[one[-1]])
                headers = [("uuid", identity)]
            self.produce(one.encode(), headers, partition, topic)
        self._writer.flush(20)

    def produce(
        self,
        value: bytes,
        headers: list[tuple[str, bytes]],
        partition: int = 0,
        topic: str | None = None,
    ) -> None:
        """Send a record."""
        where, given = topic or self.topic, cast("Any", headers)
        self._writer.produce(
            where, value, value[:1], partition, headers=given, on_delivery=_delivered
        )
        self._writer.poll(0)

    def flush(self) -> None:
        """Wait until all that was sent is there."""
        assert self._writer.flush(30) == 0

    def seen(self) -> list[str]:
        """Return the values that were applied, in the order of that."""
        return [row[0] for row in self.rows("SELECT value FROM seen ORDER BY id")]

    def rows(self, query: str) -> list[Any]:
        """Ask the store."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()

    def has_seen(self, *values: str) -> None:
        """Wait until so much was applied, and nothing else."""
        until(lambda: len(self.seen()) >= len(values), what=f"{values} in {self.seen()}")
        assert self.seen() == [*values]

    def lease(self, shard: int = 0) -> Lease:
        """Take the lease."""
        with psycopg.connect(self.place.postgres) as connection:
            return leases.acquire(connection, self.name, shard, uuid.uuid4().hex, 60, word="reader")

    def reading(self, apply: Apply = insert, shard: int = 0, **changes: Any) -> RunningReading:
        """Begin to read."""
        work = Reading(self.config(**changes), self.store, apply, self.lease(shard), lambda: True)
        return RunningReading(work)

    @contextmanager
    def read(self, apply: Apply = insert, **changes: Any) -> Iterator[RunningReading]:
        """Read for as long as the block lasts, and in good order."""
        running = self.reading(apply, **changes)
        try:
            yield running
        finally:
            failure = running.end()
        assert failure is None

    def stopped(self, apply: Apply = insert, **changes: Any) -> BaseException:
        """Read until something stops it, and return that."""
        running = self.reading(apply, **changes)
        running.join()
        assert running.failure is not None
        return running.failure


class RunningReading:
    """A reading on a thread of its own."""

    def __init__(self, work: Reading) -> None:
        self.work = work
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> BaseException | None:
        """Drain, and return what it raised."""
        self.work.drain(20)
        self.join()
        return self.failure

    def join(self, seconds: float = 40.0) -> None:
        """Wait for its end."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.work.abort()
            self._thread.join(seconds)
            raise AssertionError(f"it reads on: {self.work.figures}")

    def caught_up(self, read: int) -> dict[str, int]:
        """Wait until so many records were read."""
        until(lambda: self.work.figures["read"] >= read, what=f"{read}: {self.work.figures}")
        return self.work.figures

    def _run(self) -> None:
        try:
            self.work.run()
        except BaseException as failure:  # noqa: BLE001 - the test asks for it
            self.failure = failure


def _delivered(error: Any, _message: Any) -> None:
    assert error is None, error


@pytest.fixture
def shelf(place: Place, database: str) -> Shelf:
    """A topic to read, and the place's own database as a store."""
    return Shelf(place, database)
