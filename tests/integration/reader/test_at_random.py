"""Whatever is written, and however readers end, the store has what counts of the log."""

from __future__ import annotations

import random
from contextlib import suppress

import psycopg
import pytest

from harvest_dagster.errors import FencedError
from harvest_dagster.reader import ReadBatch
from harvest_dagster.reader.topic_trace import trace_topic
from tests.support.reading import Apply, Shelf, insert
from tests.support.waiting import until

ROUNDS, AT_ONCE = 6, 150
ENDS = """
    SELECT count(*) FROM harvest.reader_position WHERE partition < 2 AND next_offset = %s
"""


def written(chance: random.Random, sent: dict[str, list[str]]) -> list[str]:
    """Return records of producers that go on and settle, and that send their last ones again."""
    found: list[str] = []
    while len(found) < AT_ONCE:
        producer = chance.choice("ABCD")
        before = sent.setdefault(producer, [])
        if before and chance.random() < 0.25:
            found += before[-chance.randrange(1, 6) :]
        else:
            clock = (int(before[-1][1:-1]) if before else 0) + chance.randrange(1, 4)
            before.append(f"{producer}{clock}{chance.choice('CCCCCKSO')}")
            found.append(before[-1])
    return found[:AT_ONCE]


def breaking(chance: random.Random) -> Apply:
    """Return what writes messages down, and now and then has its connection cut."""

    def apply(batch: ReadBatch) -> None:
        insert(batch)
        if chance.random() < 0.1:
            with suppress(psycopg.OperationalError):
                batch.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    return apply


def expected(shelf: Shelf) -> dict[int, list[str]]:
    """Return what counts of each partition, by one sequencer that reads the whole log."""
    found: dict[int, list[str]] = {}
    for line in trace_topic(shelf.place.kafka, shelf.topic, 100_000):
        partition = int(line["journal"].rpartition("/")[2])
        for producer, clock in line["emitted"]:
            letter = bytes.fromhex(producer)[1:2].decode()
            found.setdefault(partition, []).append(f"{letter}{clock}")
    return found


def applied(shelf: Shelf) -> dict[int, list[str]]:
    """Return what was applied of each partition."""
    found: dict[int, list[str]] = {}
    for partition, value in shelf.rows("SELECT partition, value FROM seen ORDER BY id"):
        found.setdefault(partition, []).append(value[:-1])
    return found


def at_the_ends(shelf: Shelf) -> bool:
    """Return whether both partitions are read to their ends."""
    return bool(shelf.rows(ENDS % (ROUNDS * AT_ONCE)) == [(2,)])


@pytest.mark.parametrize("seed", range(4))
def test_at_random(shelf: Shelf, seed: int) -> None:
    """Readers with rings and batches of any size are cut, fenced and begun anew."""
    chance = random.Random(seed)  # noqa: S311 - to be had again
    sent: list[dict[str, list[str]]] = [{}, {}]
    for _ in range(ROUNDS):
        for partition in range(2):
            shelf.write(*written(chance, sent[partition]), partition=partition)
        sizes = {"ring": chance.choice([1, 5, 1000]), "batch_messages": chance.choice([1, 20])}
        reading = shelf.reading(breaking(chance), **sizes)
        least = chance.randrange(AT_ONCE)
        until(lambda work=reading.work, least=least: work.figures["read"] >= least)  # type: ignore[misc]
        if chance.random() < 0.5:
            reading.work.abort()
        assert isinstance(reading.end(), FencedError | None)
    with shelf.read(ring=3):
        until(lambda: at_the_ends(shelf))
    assert applied(shelf) == expected(shelf)
