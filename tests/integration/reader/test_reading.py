"""What a reader makes of messages: each that counts once, in order, in the store's transaction."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
from confluent_kafka import Consumer, TopicPartition

from harvest_dagster import Message
from harvest_dagster.reader import PostgresStore, ReadBatch, ReceivedMessage
from harvest_dagster.sequence.ticks import at
from harvest_dagster.sequence.uuids import Flags, made
from tests.support.databases import new_database
from tests.support.reading import Shelf, insert, producer_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from harvest_dagster.embedded import Servers
    from tests.support.place import Place


def test_doubles_and_interleaved_producers(shelf: Shelf) -> None:
    """Who never acknowledges holds up nobody; a double counts once, a span when it is settled."""
    shelf.write("X1C", "A1O", "B1C", "A1O", "B2C", "A2O", "B1C", "B3K", "A2O", "C1C", "C2S", "X2C")
    with shelf.read() as reading:
        shelf.has_seen("A1O", "A2O", "B1C", "B2C", "B3K", "C1C", "C2S")
        figures = reading.caught_up(12)
    assert (figures["applied"], figures["doubles"], figures["replayed"]) == (7, 3, 0)
    assert reading.work.figures["open_spans"] == 1
    assert reading.work.figures["lag"] == 0


def test_records_without_a_uuid(shelf: Shelf) -> None:
    """They are taken by their offset, and are no doubles of one another."""
    shelf.write("-same", "-same", "A1O")
    with shelf.read():
        shelf.has_seen("-same", "-same", "A1O")


def test_it_goes_on_where_it_was(shelf: Shelf) -> None:
    """Position, producers and an open span are the store's: nothing else is needed to go on."""
    shelf.write("A1O", "B1C", "B2C")
    with shelf.read() as reading:
        reading.caught_up(3)
        shelf.has_seen("A1O")
    shelf.write("A1O", "B2C", "B3K", "A2O")
    with shelf.read(ring=1) as reading:
        shelf.has_seen("A1O", "B1C", "B2C", "B3K", "A2O")
    assert reading.work.figures["replayed"] > 0


def test_a_span_larger_than_a_batch_and_the_ring(shelf: Shelf) -> None:
    """It is applied in one transaction, in the order of its log, and read again from there."""
    sizes: list[int] = []

    def count(batch: ReadBatch) -> None:
        before = batch.connection.execute("SELECT count(*) FROM seen").fetchone()
        insert(batch)
        after = batch.connection.execute("SELECT count(*) FROM seen").fetchone()
        assert before is not None
        assert after is not None
        sizes.append(after[0] - before[0])

    span = [f"A{number}C" for number in range(1, 3001)]
    shelf.write(*span[:1500], "B1O", *span[1500:], "A3001K", "B2O")
    expected = ["B1O", *span, "A3001K", "B2O"]
    with shelf.read(count, ring=100, batch_messages=50, batch_bytes=1000) as reading:
        shelf.has_seen(*expected)
    assert max(sizes) >= 3001
    assert reading.work.figures["replayed"] >= 2900


def test_what_a_message_says(shelf: Shelf) -> None:
    """Where it stands, what it has, when it was published, and by what it is known."""
    found: list[ReceivedMessage] = []
    now = datetime(2026, 7, 1, 12, 0, 1, tzinfo=UTC)
    clock = at(int(now.timestamp()) * 1_000_000_000)
    identity = made(producer_of("A"), clock, Flags.OUTSIDE)
    shelf.produce(b"value", [("trace", b"t1"), ("uuid", identity)], 1)
    shelf.flush()
    with shelf.read(lambda batch: found.extend(batch.messages)) as reading:
        reading.caught_up(1)
    (message,) = found
    assert message[:5] == (shelf.place.topic, 1, 0, b"v", b"value")
    assert message.headers == (("trace", b"t1"), ("uuid", identity))
    assert (message.uuid, message.published_at) == (UUID(bytes=identity), now)
    assert message.timestamp is not None


def test_it_stashes_in_the_same_transaction(shelf: Shelf) -> None:
    """What a reader derives goes out by an outbox of its store's."""

    def derive(batch: ReadBatch) -> None:
        batch.stash(Message("derived", m.key, m.value) for m in batch.messages)

    shelf.write("A1O", "A1O", "A2O")
    with shelf.read(derive) as reading:
        reading.caught_up(3)
    values = shelf.rows("SELECT kafka_value FROM outbox ORDER BY id")
    assert values == [(b"A1O",), (b"A2O",)]


def test_a_store_in_another_database(place: Place, servers: Servers) -> None:
    """It makes its tables itself, and needs nothing of the lease's database."""
    with new_database(servers, "template0") as url:
        shelf = Shelf(place, url)
        shelf.write("A1O", "A2O", "A2O")
        with shelf.read():
            shelf.has_seen("A1O", "A2O")
        with psycopg.connect(url) as connection:
            (position,) = [p for p in shelf.store.positions(connection, shelf.name) if p.offset]
        assert (position.offset, position.fence) == (3, 1)
        with PostgresStore(place.postgres).connect("test") as connection:
            assert shelf.store.positions(connection, shelf.name) == []


def test_producers_are_forgotten(shelf: Shelf) -> None:
    """By the horizon, where they are kept; who has a span open is not."""
    hour = 3600 * 10_000_000 << 4
    shelf.write("A160O", "B160C", f"C{2 * hour}O")
    with shelf.read(horizon="1h") as reading:
        reading.caught_up(3)
    rows = shelf.rows("SELECT last_ack, begin FROM harvest.reader_producer ORDER BY begin")
    assert rows == [(2 * hour, -1), (159, 1)]


def test_the_largest_clock(shelf: Shelf) -> None:
    """A clock has 64 bits, and so has what is kept of it."""
    largest = f"A{(1 << 64) - 1}O"
    shelf.write(largest)
    with shelf.read():
        shelf.has_seen(largest)
    shelf.write(largest, "A5O", "B1O")
    with shelf.read():
        shelf.has_seen(largest, "B1O")


def test_two_topics(shelf: Shelf, place: Place) -> None:
    """A producer's clocks are of a partition: in another, they say nothing."""
    other = place.new_topic()
    shelf.write("A2O")
    shelf.write("A1O", "A1O", topic=other)
    with shelf.read(topics=(shelf.topic, other)) as reading:
        reading.caught_up(3)
    assert sorted(shelf.seen()) == ["A1O", "A2O"]


def test_the_groups_offsets_follow(shelf: Shelf) -> None:
    """Tools that show a lag find it in Kafka."""
    shelf.write("A1O", "A2O")
    with shelf.read():
        shelf.has_seen("A1O", "A2O")
    asked = Consumer({**shelf.place.kafka, "group.id": shelf.name})
    places = [TopicPartition(shelf.topic, 0)]
    until(lambda: asked.committed(places, 10)[0].offset == 2)
    asked.close()


def test_two_shards_share_the_partitions(shelf: Shelf) -> None:
    """Partition p is read by shard p % shards."""
    for partition in range(4):
        shelf.write(f"A{partition + 1}O", partition=partition)
    second = shelf.reading(shard=1, shards=2)
    second.caught_up(2)
    assert second.end() is None
    assert sorted(shelf.seen()) == ["A2O", "A4O"]
    with shelf.read(shards=2) as first:
        first.caught_up(2)
    assert sorted(shelf.seen()) == ["A1O", "A2O", "A3O", "A4O"]
