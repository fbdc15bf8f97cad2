"""Records that Kafka will never take are set aside, and hold no more than their own key."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message
from tests.support.account import judge, lanes, read
from tests.support.place import set_limit
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

DELIVERIES = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
LARGE = b"x" * 3000
INSERT = """
    INSERT INTO outbox (id, kafka_topic, kafka_key, kafka_value, kafka_header_keys,
                        kafka_header_values)
    SELECT id, kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values
      FROM harvest.parked WHERE id = %s
"""
STASH_LARGE = """
    INSERT INTO outbox (kafka_topic, kafka_key, kafka_value)
    VALUES (%s, 'k', repeat('x', 2000000)::bytea)
"""
MARK = "UPDATE harvest.parked SET requeued_at = now() WHERE id = %s"
EVENT = "INSERT INTO harvest.event (name, shard, kind) VALUES (%s, 0, %s)"

WRONG: dict[str, dict[str, Any]] = {
    "larger than its topic takes": {"value": LARGE},
    "far larger than its topic takes": {"value": b"x" * 1_000_000},
    "for a partition that is not there": {"partition": 99},
}


@pytest.fixture
def small(place: Place) -> Place:
    """Give a place whose topic takes only small records."""
    place.topic = place.new_topic(max_message_bytes="2000")
    return place


def with_one_wrong(place: Place, **wrong: Any) -> list[Message]:
    """Stash 200 records over 10 keys, of which the 100th, of key k9, can't be published."""
    place.put(99, keys=10)
    place.stash([next(place.counting(10))._replace(**wrong)])
    return place.put(100, keys=10)


def without(place: Place, key: bytes, start: int) -> list[Message]:
    """What was stashed, without a key's records from a place on."""
    return [m for n, m in enumerate(place.stashed) if m.key != key or n < start]


def requeue(connection: psycopg.Connection[Any], place: Place, ids: Iterable[int]) -> None:
    """Put records back, as an operator does."""
    for number in ids:
        connection.execute(INSERT, (number,))
        connection.execute(MARK, (number,))
    connection.execute(EVENT, (place.name, "requeued"))


@DELIVERIES
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_hold_key(
    small: Place, start_tour: StartTour, delivery: str, wrong: dict[str, Any]
) -> None:
    """A record that can't be published is parked; what follows of its key waits, the rest flows."""
    with_one_wrong(small, **wrong)
    start_tour(small.config(delivery=delivery), small.lease())
    until(lambda: small.waiting() == 10)
    judge(without(small, b"k9", 99), read(small.kafka, small.topic), delivery)
    kept = small.rows("SELECT id, kafka_key, holds_key, requeued_at FROM harvest.parked")
    assert kept == [(100, b"k9", True, None)]


@DELIVERIES
def test_larger_than_a_segment(place: Place, start_tour: StartTour, delivery: str) -> None:
    """What the topic takes, and no segment of its log, is parked as any that is too large."""
    place.put(50)
    large = place.new_topic(segment_bytes=str(2**20), max_message_bytes="3000000")
    with place.connect() as connection:
        connection.execute(STASH_LARGE, (large,))
    start_tour(place.config(delivery=delivery), place.lease())
    until(lambda: place.waiting() == 0)
    judge(place.stashed, read(place.kafka, place.topic), delivery)
    ((reason,),) = place.rows("SELECT reason FROM harvest.parked")
    assert "segment" in reason


@DELIVERIES
def test_hold_key_of_another_shard(small: Place, start_tour: StartTour, delivery: str) -> None:
    """A key is held too by the shard that inherits it when the number of shards has changed."""
    with_one_wrong(small, value=LARGE)
    running = start_tour(small.config(delivery=delivery), small.lease())
    until(lambda: small.waiting() == 10)
    running.end()
    small.put(1, keys=10)
    start_tour(small.config(delivery=delivery, shards=4), small.lease(shard=2))  # k0's, and k9's
    until(lambda: not small.rows("SELECT id FROM outbox WHERE kafka_key = 'k0'"))
    assert small.waiting() == 10
    judge(without(small, b"k9", 99), read(small.kafka, small.topic), delivery)


@DELIVERIES
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_reason_is_told(
    small: Place, start_tour: StartTour, delivery: str, wrong: dict[str, Any]
) -> None:
    """Whoever looks at what is parked, or at the events, finds out why."""
    small.stash([next(small.counting())._replace(**wrong)])
    start_tour(small.config(delivery=delivery), small.lease())
    until(lambda: small.rows("SELECT id FROM harvest.parked"))
    ((reason,),) = small.rows("SELECT reason FROM harvest.parked")
    assert any(word in reason.lower() for word in ("too large", "max.message.bytes", "partition"))
    (event,) = small.events("parked")
    assert event.detail == {"id": 1, "topic": small.topic, "reason": reason}


@DELIVERIES
def test_too_large_for_the_client(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A record that the client's own limit forbids is parked as well."""
    with_one_wrong(place, value=LARGE)
    config = place.config(delivery=delivery, producer_kafka={"message.max.bytes": 2000})
    start_tour(config, place.lease())
    until(lambda: place.waiting() == 10)
    judge(without(place, b"k9", 99), read(place.kafka, place.topic), delivery)


@DELIVERIES
def test_skip(small: Place, start_tour: StartTour, delivery: str) -> None:
    """With `on_rejected: skip` the records after a parked one go on."""
    with_one_wrong(small, value=LARGE)
    start_tour(small.config(delivery=delivery, on_rejected="skip"), small.lease())
    small.drained()
    rest = [message for message in small.stashed if message.value != LARGE]
    judge(rest, read(small.kafka, small.topic), delivery)
    assert small.rows("SELECT id, holds_key FROM harvest.parked") == [(100, False)]


@DELIVERIES
def test_requeued(small: Place, start_tour: StartTour, delivery: str) -> None:
    """A parked record that is put back, when it can be published, goes before what waits for it."""
    with_one_wrong(small, value=LARGE)
    start_tour(small.config(delivery=delivery), small.lease())
    until(lambda: small.waiting() == 10)
    set_limit(small.admin, small.topic, 100_000)
    with psycopg.connect(small.postgres) as operator:
        requeue(operator, small, [100])
    small.drained()
    judge(small.stashed, read(small.kafka, small.topic), delivery)


def test_requeued_in_vain(small: Place, start_tour: StartTour) -> None:
    """A record that is put back, and still can't be published, is parked a second time."""
    with_one_wrong(small, value=LARGE)
    start_tour(small.config(), small.lease())
    until(lambda: small.waiting() == 10)
    with psycopg.connect(small.postgres) as operator:
        requeue(operator, small, [100])
    until(lambda: small.rows("SELECT tries, requeued_at FROM harvest.parked") == [(2, None)])
    until(lambda: small.waiting() == 10)
    assert len(lanes(read(small.kafka, small.topic))[small.topic, b"k9"]) == 9


def test_discarded(small: Place, start_tour: StartTour) -> None:
    """When a parked record is discarded, the records behind it go on."""
    with_one_wrong(small, value=LARGE)
    start_tour(small.config(), small.lease())
    until(lambda: small.waiting() == 10)
    with psycopg.connect(small.postgres) as operator:
        operator.execute("DELETE FROM harvest.parked")
        operator.execute(EVENT, (small.name, "discarded"))
    small.drained()
    rest = [message for message in small.stashed if message.value != LARGE]
    judge(rest, read(small.kafka, small.topic), "exactly_once")


def test_operators_that_overlap(small: Place, start_tour: StartTour) -> None:
    """Of two operators at once, the one who began first and committed last is heard as well."""
    small.stash(next(small.counting())._replace(key=b"a", value=LARGE) for _ in range(1))
    small.stash(next(small.counting())._replace(key=b"b", value=LARGE) for _ in range(1))
    start_tour(small.config(), small.lease())
    until(lambda: len(small.rows("SELECT id FROM harvest.parked")) == 2)
    small.goes_round()
    set_limit(small.admin, small.topic, 100_000)
    with psycopg.connect(small.postgres) as first, psycopg.connect(small.postgres) as second:
        requeue(first, small, [1])
        requeue(second, small, [2])
        second.commit()
        small.drained()
        until(lambda: b"b" in {message.key for message in read(small.kafka, small.topic)})
        first.commit()
    small.drained(10)


@DELIVERIES
def test_many_keys(small: Place, start_tour: StartTour, delivery: str) -> None:
    """Wrong records of several keys, in one batch, are all found."""
    small.put(50, keys=5)
    large = [next(small.counting())._replace(key=b"k%d" % n, value=LARGE) for n in (1, 3)]
    small.stash(large)
    small.put(48, keys=5)
    start_tour(small.config(delivery=delivery), small.lease())
    until(lambda: len(small.rows("SELECT id FROM harvest.parked")) == 2)
    until(lambda: {key for (key,) in small.rows("SELECT kafka_key FROM outbox")} == {b"k1", b"k3"})
    flowing = {b"k0", b"k2", b"k4"}
    found = [m for m in read(small.kafka, small.topic) if m.key in flowing]
    judge([m for m in small.stashed if m.key in flowing], found, delivery)


BAD_HEADERS = {
    "names without values": ("{a,b}", "{x}"),
    "names, and NULL for values": ("{a}", None),
    "no name": ("{NULL}", "{x}"),
    "names in two dimensions": ("{{a},{b}}", "{x,y}"),
    "values in two dimensions": ("{a}", "{{x},{y}}"),
}


@DELIVERIES
@pytest.mark.parametrize("arrays", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_headers_that_are_none(
    place: Place, start_tour: StartTour, delivery: str, arrays: tuple[str, str | None]
) -> None:
    """A record whose header arrays make no headers, as an INSERT may leave, is parked alone."""
    place.rows("ALTER TABLE outbox ALTER kafka_header_values DROP NOT NULL")
    place.put(20, keys=5)
    insert = "INSERT INTO outbox (kafka_topic, kafka_key, kafka_header_keys, kafka_header_values)"
    place.rows(f"{insert} VALUES (%s, 'bad', %s, %s)", (place.topic, *arrays))
    place.put(20, keys=5)
    start_tour(place.config(delivery=delivery), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), delivery)
    ((reason,),) = place.rows("SELECT reason FROM harvest.parked")
    assert "kafka_header" in reason


@DELIVERIES
def test_many_wrong_ones_do_not_slow_the_rest(
    small: Place, start_tour: StartTour, delivery: str
) -> None:
    """However many records are refused one after the other, no pause adds up for the others."""
    for number in range(6):
        small.stash([next(small.counting())._replace(key=b"bad%d" % number, value=LARGE)])
        small.put(5, keys=5)
    start_tour(small.config(delivery=delivery), small.lease())
    small.drained(20)
    assert len(small.rows("SELECT id FROM harvest.parked")) == 6


@DELIVERIES
def test_a_limit_below_what_goes_together(
    small: Place, start_tour: StartTour, delivery: str
) -> None:
    """Records that a topic takes one by one, and not together, are published all the same."""
    small.stash(m._replace(value=b"x" * 300) for m in islice(small.counting(), 400))
    running = start_tour(small.config(delivery=delivery), small.lease())
    small.drained()
    judge(small.stashed, read(small.kafka, small.topic), delivery)
    assert running.tour.totals.parked == 0


@DELIVERIES
def test_compressed(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A record that a topic takes compressed, and not as it is, is published."""
    place.topic = place.new_topic(max_message_bytes="600000")
    place.stash([next(place.counting())._replace(value=b"x" * 1_000_000)])
    running = start_tour(
        place.config(delivery=delivery, producer_kafka={"compression.type": "lz4"}), place.lease()
    )
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), delivery)
    assert running.tour.totals.parked == 0
