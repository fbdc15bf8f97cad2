"""What stops a reader: what may be lost, what can't be read, what can't be applied."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Producer, TopicPartition

from harvest_dagster.errors import ReaderError
from harvest_dagster.ledger import events
from harvest_dagster.reader import ReadBatch
from tests.support.reading import Shelf, insert
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place


def delete_records(place: Place, topic: str, before: int) -> None:
    """Have Kafka forget what stands before an offset of the first partition."""
    gone = TopicPartition(topic, 0, before)
    for answer in place.admin.delete_records([gone]).values():
        answer.result(20)


def test_apply_raises(shelf: Shelf) -> None:
    """The message is named, and nothing of its batch is written, until it can be applied."""

    def apply(batch: ReadBatch) -> None:
        for message in batch.messages:
            if message.value == b"A3O":
                raise ValueError("three is none of mine")
            batch.connection.execute("INSERT INTO seen (value) VALUES (%s)", (message.value,))

    shelf.write("A1O", "A2O", "A3O", "A4O")
    said = str(shelf.stopped(apply))
    place = f"{shelf.place.topic}, partition 0, offset 2"
    assert said.startswith(f"apply raised ValueError at {place}: three is none of mine; ")
    assert shelf.seen() == []
    with psycopg.connect(shelf.place.postgres) as connection:
        (event,) = events.read(connection, shelf.name, ["stopped"])
    assert place in event.detail["reason"]
    with shelf.read():
        shelf.has_seen("A1O", "A2O", "A3O", "A4O")


def test_apply_whose_statement_failed(shelf: Shelf) -> None:
    """What swallows PostgreSQL's error is told how not to."""

    def apply(batch: ReadBatch) -> None:
        for _ in batch.messages:
            with suppress(psycopg.errors.DivisionByZero):
                batch.connection.execute("SELECT 1 / 0")

    shelf.write("A1O")
    assert "wrap what may fail into" in str(shelf.stopped(apply))


def test_apply_that_commits(shelf: Shelf) -> None:
    """The transaction is the reader's to commit."""

    def apply(batch: ReadBatch) -> None:
        insert(batch)
        batch.connection.commit()

    shelf.write("A1O")
    assert "apply raised ProgrammingError" in str(shelf.stopped(apply))
    assert shelf.seen() == []


def test_apply_that_does_not_read_on(shelf: Shelf) -> None:
    """What it left unread would be lost."""

    def apply(batch: ReadBatch) -> None:
        batch.connection.execute("INSERT INTO seen (value) VALUES ('never')")

    shelf.write("A1O")
    assert "before it had read batch.messages to their end" in str(shelf.stopped(apply))
    assert shelf.seen() == []


@pytest.mark.parametrize(
    ("identity", "uuid", "why"),
    [
        (b"short", "optional", "a UUID has 16 bytes, and this one has 5"),
        (bytes(range(16)), "optional", "is no UUID of version 1"),
        (None, "required", "the record has no header uuid"),
    ],
)
def test_a_uuid_that_is_none(shelf: Shelf, identity: bytes | None, uuid: str, why: str) -> None:
    """It is named, and what stands before it is applied."""
    shelf.write("A1O", "A2O")
    shelf.produce(b"bad", [] if identity is None else [("uuid", identity)])
    shelf.flush()
    said = str(shelf.stopped(uuid=uuid))
    assert said.startswith(f"{shelf.place.topic}, partition 0, offset 2: ")
    assert why in said
    assert shelf.seen() == ["A1O", "A2O"]


def test_records_that_are_gone(shelf: Shelf, place: Place) -> None:
    """Never a gap without a word: the reader says which offsets are gone, and what to do."""
    shelf.write("A1O")
    with shelf.read():
        shelf.has_seen("A1O")
    shelf.write("A2O", "A3O", "A4O")
    delete_records(place, place.topic, 3)
    said = str(shelf.stopped())
    assert f"{place.topic}, partition 0: the offsets 1 to 2 are gone" in said
    assert "harvest reader reset" in said
    assert shelf.seen() == ["A1O"]


def test_a_log_that_begins_late(shelf: Shelf, place: Place) -> None:
    """A reader that is new begins with what there is."""
    shelf.write("A1O", "A2O", "A3O")
    delete_records(place, place.topic, 2)
    with shelf.read():
        shelf.has_seen("A3O")


def test_a_topic_that_was_made_anew(shelf: Shelf, place: Place) -> None:
    """Its offsets say nothing of the new one."""
    shelf.write("A1O")
    with shelf.read():
        shelf.has_seen("A1O")
    place.drop_topic(place.topic)
    until(lambda: place.topic not in place.admin.list_topics(timeout=10).topics)
    assert f"there is no topic {place.topic}" in str(shelf.stopped())
    place.new_topic(place.topic)
    shelf.write("A2O", "A3O", "A4O")
    assert f"the topic {place.topic} was deleted and made anew" in str(shelf.stopped())
    assert shelf.seen() == ["A1O"]


def test_a_topic_that_is_made_anew_meanwhile(shelf: Shelf, place: Place) -> None:
    """It is seen before anything of the new one is committed."""
    shelf.write("A1O")
    reading = shelf.reading()
    shelf.has_seen("A1O")
    place.drop_topic(place.topic)
    until(lambda: place.topic not in place.admin.list_topics(timeout=10).topics)
    place.new_topic(place.topic)
    shelf.write("A2O", "A3O", "A4O")
    reading.join()
    assert isinstance(reading.failure, ReaderError)
    assert shelf.seen() == ["A1O"]


def test_a_topic_that_is_made_anew_while_it_is_applied(shelf: Shelf, place: Place) -> None:
    """The last look is behind the last record: nothing that was read before it is committed."""

    def apply(batch: ReadBatch) -> None:
        insert(batch)
        place.drop_topic(place.topic)
        until(lambda: place.topic not in place.admin.list_topics(timeout=10).topics)
        place.new_topic(place.topic)

    shelf.write("A1O")
    assert f"the topic {place.topic} was deleted and made anew" in str(shelf.stopped(apply))
    assert shelf.seen() == []


def test_a_span_whose_beginning_is_none(shelf: Shelf, place: Place) -> None:
    """Where no record stands any more, as in a log that was compacted, it is not applied either."""
    settings = {**place.kafka, "transactional.id": shelf.name}
    transactions = Producer(settings)
    transactions.init_transactions(20)
    transactions.begin_transaction()
    transactions.produce(place.topic, b"committed", partition=0)
    transactions.commit_transaction(20)
    until(lambda: not place.in_transaction(place.topic))  # its mark is there, and at offset 1
    shelf.write("A1C")
    with shelf.read() as reading:
        reading.caught_up(2)
    of_the_mark = "UPDATE harvest.reader_producer SET begin = 1 RETURNING begin"
    assert shelf.rows(of_the_mark) == [(1,)]
    shelf.write("A2K")
    assert "messages from offset 1 on" in str(shelf.stopped())
    assert shelf.seen() == ["committed"]


def test_a_span_whose_beginning_is_gone(shelf: Shelf, place: Place) -> None:
    """It is not applied without it."""
    shelf.write("A1C", "A2C", "B1O")
    with shelf.read() as reading:
        reading.caught_up(3)
    shelf.write("A3K", "B2O")
    delete_records(place, place.topic, 1)
    said = str(shelf.stopped())
    assert f"{place.topic}, partition 0: messages from offset 0 on" in said
    assert shelf.seen() == ["B1O"]
