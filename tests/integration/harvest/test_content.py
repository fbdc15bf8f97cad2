"""What is stashed is what a reader gets, of either table, either way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harvest_dagster import Message
from tests.support.account import COMMITTED, PLAIN, Reader, judge, read
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

HEADERS = (("a", "1"), ("a", "2"), ("ä", "wörld"), ("empty", ""))
TEXTS = [
    ("k", "text"),
    ("k", None),
    ("k", ""),
    ("k", "üñí\n\t\\'\"{}"),
    ("", "an empty key"),
    ("Ω", '{"json": [1, 2]}'),
]
BYTES: list[tuple[bytes | None, bytes | str | None]] = [
    (b"\x00\xff", b"\x80\x00binary"),
    (None, "no key"),
    (None, None),
    (b"k", b"\xde\xad" * 5000),
]


def texts(topic: str) -> list[Message]:
    """Make what goharvest's table takes."""
    plain = [Message(topic, key, value) for key, value in TEXTS]
    return [*plain, Message(topic, "h", "with headers", HEADERS)]


def binaries(topic: str) -> list[Message]:
    """Make what only our own table takes."""
    headers = (("bytes", b"\x00\xff"), ("null", None))
    known = [Message(topic, key, value, headers) for key, value in BYTES]
    return [*known, *(Message(topic, f"p{n}", "chosen", partition=n) for n in range(4))]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("outbox", ["outbox", "goharvest_outbox"])
def test_text(place: Place, start_tour: StartTour, delivery: str, outbox: str) -> None:
    """Text, tombstones, empty values, and headers that repeat arrive as they were stashed."""
    place.stash(texts(place.topic), outbox)
    start_tour(place.config(delivery=delivery, outbox=outbox), place.lease())
    place.drained(outbox=outbox)
    judge(place.stashed, read(place.kafka, place.topic), delivery)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_text_where_clients_are_given_latin1(
    place: Place, start_tour: StartTour, delivery: str
) -> None:
    """A database that gives its clients LATIN1 holds no text back that LATIN1 lacks."""
    place.stash(texts(place.topic), "goharvest_outbox")
    database = place.rows("SELECT current_database()")[0][0]
    place.rows(f'ALTER DATABASE "{database}" SET client_encoding = LATIN1')
    start_tour(place.config(delivery=delivery, outbox="goharvest_outbox"), place.lease())
    place.drained(outbox="goharvest_outbox")
    judge(place.stashed, read(place.kafka, place.topic), delivery)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_bytes(place: Place, start_tour: StartTour, delivery: str) -> None:
    """Bytes, null headers and messages without a key arrive as they were stashed."""
    place.stash(binaries(place.topic))
    start_tour(place.config(delivery=delivery), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), delivery)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_partition(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A message that names its partition is put there."""
    place.stash(binaries(place.topic))
    start_tour(place.config(delivery=delivery), place.lease())
    place.drained()
    found = {m.key: m.partition for m in read(place.kafka, place.topic) if m.value == b"chosen"}
    assert found == {b"p0": 0, b"p1": 1, b"p2": 2, b"p3": 3}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("outbox", ["outbox", "goharvest_outbox"])
def test_backlog(place: Place, start_tour: StartTour, delivery: str, outbox: str) -> None:
    """A backlog is drained in order and, as nothing fails, once, for any kind of reader."""
    place.put(5000, outbox=outbox)
    running = start_tour(place.config(delivery=delivery, outbox=outbox), place.lease())
    place.drained(outbox=outbox)
    for isolation in (COMMITTED, PLAIN):
        judge(place.stashed, read(place.kafka, place.topic, isolation=isolation), "exactly_once")
    assert running.end() is None
    totals = running.tour.totals
    assert (totals.marked, totals.published, totals.purged) == (5000, 5000, 5000)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_reads_during(place: Place, start_tour: StartTour, delivery: str) -> None:
    """Whoever reads along, while records are stashed and harvested, sees the same as afterwards."""
    reader = Reader(place.kafka, place.topic)
    start_tour(place.config(delivery=delivery), place.lease())
    for _ in range(20):
        place.put(100)
    until(lambda: len(reader.found) == 2000)
    judge(place.stashed, reader.stop(), "exactly_once")
