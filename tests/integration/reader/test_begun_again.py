"""What fails is begun again, and its effects in the store count once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import psycopg
from confluent_kafka.cimpl import NewPartitions

from harvest_dagster.errors import FencedError
from harvest_dagster.reader import PostgresStore, ReadBatch
from harvest_dagster.reader.positions import Position
from harvest_dagster.reader.received import log_of
from harvest_dagster.reader.source_topics import SourceTopics
from harvest_dagster.sequence.states import Checkpoint, Producer
from tests.support.lost_answer import LosesAnswer
from tests.support.paths import PROGRAMS, ROOT
from tests.support.proxies import served
from tests.support.reading import Shelf, insert, producer_of
from tests.support.running import Spawn, StartHarvest, spawn, start_harvest
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place

__all__ = ["spawn", "start_harvest"]


def test_fenced_by_a_second_reader(shelf: Shelf, place: Place) -> None:
    """Who was fenced while it applied writes nothing, and says so."""
    shelf.topic = place.new_topic(partitions=1)
    applying, go_on = threading.Event(), threading.Event()

    def slow(batch: ReadBatch) -> None:
        insert(batch)
        applying.set()
        go_on.wait(30)

    shelf.write("A1O", "B1C")
    first = shelf.reading(slow)
    applying.wait(30)
    with shelf.read() as second:
        shelf.has_seen("A1O")
        go_on.set()
        first.join()
        assert isinstance(first.failure, FencedError)
        assert first.work.figures["applied"] == 0
        shelf.write("A1O", "B2K")
        shelf.has_seen("A1O", "B1C", "B2K")
        assert second.work.figures["applied"] == 3


def test_a_commit_whose_answer_is_lost(shelf: Shelf, place: Place) -> None:
    """It was done: the reader finds that behind its next fence, and applies nothing twice."""
    batches: list[int] = []
    with served(LosesAnswer(place.postgres, b"no statement")) as way:

        def apply(batch: ReadBatch) -> None:
            insert(batch)
            batches.append(1)
            way.text = b"COMMIT"

        shelf.store = PostgresStore(way.url)
        shelf.write("A1O", "A2O", "B1C")
        with shelf.read(apply):
            until(way.lost.is_set)
            shelf.write("A2O", "B2K", "A3O")
            shelf.has_seen("A1O", "A2O", "B1C", "B2K", "A3O")
    assert len(batches) >= 2


def test_it_waits_for_a_commit_under_way(shelf: Shelf, place: Place) -> None:
    """Whoever begins goes on behind what another commits just then, and not before it."""
    shelf.write("A1O", "A2O", "A3O")
    topic = SourceTopics(place.kafka).look([shelf.topic])[shelf.topic]
    new = [Position(*each, topic.id, 0, 0, 0) for each in topic.places]
    log = log_of(shelf.topic, 0)
    changes = {log: Checkpoint(2, {producer_of("A"): Producer(2)})}
    with shelf.store.connect("before") as connection:
        shelf.store.prepare(connection)
        taken = shelf.store.take(connection, shelf.name, new, topic.places)
        with connection.transaction():
            shelf.store.move(connection, shelf.name, taken, changes, {})
            reading = shelf.reading()
            until(lambda: place.is_waiting(f"harvest {shelf.name} read"))
            assert reading.work.found is None
    shelf.has_seen("A3O")
    assert reading.end() is None


def test_a_connection_that_breaks_before_the_commit(shelf: Shelf) -> None:
    """Nothing was written, so all of it is applied again."""
    times: list[int] = []

    def apply(batch: ReadBatch) -> None:
        insert(batch)
        times.append(1)
        if len(times) == 1:
            with psycopg.connect(shelf.url) as other:
                pid = batch.connection.info.backend_pid
                other.execute("SELECT pg_terminate_backend(%s)", (pid,))

    shelf.write("A1O", "A2O")
    with shelf.read(apply):
        shelf.has_seen("A1O", "A2O")
    assert len(times) > 1


def test_what_fails_once(shelf: Shelf) -> None:
    """What apply raises of a batch, and of no message of it alone, stops nobody."""
    sizes: list[int] = []

    def apply(batch: ReadBatch) -> None:
        messages = [*batch.messages]
        sizes.append(len(messages))
        if len(messages) > 1:
            raise ValueError("not so many")
        insert(ReadBatch(iter(messages), batch.connection))

    shelf.write("A1O", "A2O", "B1C", "B2K")
    with shelf.read(apply):
        shelf.has_seen("A1O", "A2O", "B1C", "B2K")
    assert sizes == [4, 1, 1, 1, 1]


def test_partitions_that_come_later(shelf: Shelf, place: Place) -> None:
    """They are read from their first record on."""
    topic = place.new_topic(partitions=1)
    shelf.write("A1O", topic=topic)
    with shelf.read(topics=(topic,)):
        shelf.has_seen("A1O")
        widen(place, topic, 2)
        Shelf(place, shelf.url).write("A2O", partition=1, topic=topic)
        shelf.has_seen("A1O", "A2O")


def widen(place: Place, topic: str, partitions: int) -> None:
    """Give a topic more partitions, and wait until they are there."""
    place.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
    until(lambda: len(place.admin.list_topics(topic, 10).topics[topic].partitions) == partitions)


@contextmanager
def process(shelf: Shelf) -> Iterator[subprocess.Popen[str]]:
    """Read in a process of its own, which is killed when the block ends."""
    settings = {
        "name": shelf.name,
        "topics": [shelf.place.topic],
        "kafka": shelf.place.kafka,
        "postgres": shelf.url,
        "batch_messages": 50,
    }
    job = {"config": settings, "lease": asdict(shelf.lease()), "store": shelf.url}
    program = [sys.executable, str(PROGRAMS / "reading.py")]
    reading = subprocess.Popen(
        program, stdin=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert reading.stdin
    with reading.stdin as stdin:
        json.dump(job, stdin, default=str)
    try:
        yield reading
    finally:
        reading.kill()
        reading.wait(20)


def test_killed_while_a_harvest_publishes(
    shelf: Shelf, place: Place, start_harvest: StartHarvest
) -> None:
    """Of readers that are killed at work each message is in the store once, each key's in order."""
    start_harvest(place.config(delivery="exactly_once"))
    for _ in range(5):
        place.put(600)
        before = len(shelf.seen())
        with process(shelf) as reading:
            until(lambda before=before: len(shelf.seen()) > before + 150)  # type: ignore[misc]
            assert reading.poll() is None
    reads_all(shelf, place)


def test_leaders_and_readers_are_killed(
    shelf: Shelf, place: Place, spawn: Spawn, start_harvest: StartHarvest
) -> None:
    """Sequenced, what was sent again and again, by one leader after the other, counts once."""
    settings = place.settings(delivery="sequenced", limits={"mark_query_records": 50})
    for _ in range(5):
        place.put(600)
        before, waiting = len(shelf.seen()), place.waiting()
        leader = spawn(settings, place.lease())
        with process(shelf) as reading:
            until(lambda waiting=waiting: place.waiting() < waiting - 100)  # type: ignore[misc]
            leader.kill()
            until(lambda before=before: len(shelf.seen()) > before + 50)  # type: ignore[misc]
            assert reading.poll() is None
    start_harvest(place.config(delivery="sequenced"))
    reads_all(shelf, place)


def reads_all(shelf: Shelf, place: Place) -> None:
    """Read on, and assert that all that was stashed is there once, and each key's in order."""
    with shelf.read():
        until(lambda: len(shelf.seen()) >= len(place.stashed))
        until(lambda: not place.waiting())
    stashed: dict[str, list[str]] = {}
    for message in place.stashed:
        key, value = bytes(message.key or b"").decode(), bytes(message.value or b"").decode()
        stashed.setdefault(key, []).append(value)
    found: dict[str, list[str]] = {}
    for key, value in shelf.rows("SELECT key, value FROM seen ORDER BY id"):
        found.setdefault(key, []).append(value)
    assert found == stashed
