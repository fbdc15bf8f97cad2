"""The claims of the delivery `sequenced`: all that is said of a record before it is sent.

A claim is durable before anything of it goes out. It says as whose records, with which clocks and
to which partitions, so whoever publishes it, the leader that made it, one after it or both, sends
the same. Nobody marks such a claim anew: a successor publishes it as it is, before any of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from psycopg.types.multirange import Multirange

from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.batch import Batch, Row, as_multirange
from harvest_dagster.harvest.placement import Placement, Rule
from harvest_dagster.harvest.stage import RejectedError
from harvest_dagster.harvest.topic_book import TopicBook
from harvest_dagster.ledger.fence import Fence, fenced
from harvest_dagster.postgres.statements import statements
from harvest_dagster.sequence.uuids import new_producer
from harvest_dagster.text import counted

_SQL = statements("harvest_dagster.harvest", "claims.sql")
_CLAIM = fenced(_SQL["claim_sequenced"], now=_SQL["now"].sql())
_PRODUCER = fenced(_SQL["producer"])
_FORGET = fenced(_SQL["forget"])


@dataclass(slots=True)
class SequencedBatch(Batch):
    """A batch whose claim says as whose records it goes out, with which clocks, and where to."""

    producer: bytes
    clocks: Sequence[int]
    placement: Placement

    @property
    def places(self) -> Iterator[tuple[Row, int, int]]:
        """Return each record, its clock and its partition."""
        for row, clock in zip(self.rows, self.clocks, strict=True):
            partition = row[6]
            if partition is None:
                partition = self.placement.place(row[1], row[2], clock)
            yield row, clock, partition


class SequencedClaims:
    """Marks batches that are published as they are claimed, whatever becomes of this term."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        fence: Fence,
        topics: TopicBook,
        rule: Rule,
        shards: int,
        number: int,
    ) -> None:
        """Go on with a number."""
        self._connection, self._fence = connection, fence
        self._topics, self._rule, self._shards = topics, rule, shards
        self._number = number
        (self._producer,) = fence.row(connection, _PRODUCER, new=new_producer(stable=True))

    def claim(self, rows: Sequence[Row], size: int) -> SequencedBatch:
        """Write a claim, and return the batch that it is of.

        Raise a RejectedError for records whose partition is not there: in no other could they wait
        for their turn, and so their key's later ones would not wait for them.
        """
        widths = {topic: self._topics.width(topic) for topic in {row[1] for row in rows}}
        wrong = [row for row in rows if row[6] is not None and not 0 <= row[6] < widths[row[1]]]
        if wrong:
            raise RejectedError([(row, f"there is no partition {row[6]}") for row in wrong])
        placement = Placement(self._rule, self._shards, widths)
        values = {
            "batch": self._number,
            "ids": as_multirange(row[0] for row in rows),
            "count": len(rows),
            "producer": self._producer,
            "placement": Jsonb(placement.kept()),
        }
        (first,) = self._fence.row(self._connection, _CLAIM, **values)
        clocks = range(first, first + len(rows))
        self._number += 1
        return SequencedBatch(self._number - 1, rows, size, self._producer, clocks, placement)


def left_claims(
    connection: psycopg.Connection[Any], fence: Fence, records: bytes, shards: int
) -> list[SequencedBatch]:
    """Read the claims that are to be published as they are, with what is left of their records."""
    values = {**fence.parameters, "shards": shards}
    for (others,) in connection.execute(_SQL["other_shards"].text, values).fetchall():
        raise HarvestStateError(
            f"records of {fence.lease.name} were marked by {counted(others, 'shard')}, and now"
            f" there are {shards}: set shards to {others} again until nothing is in flight"
        )
    found = connection.execute(_SQL["sequenced"].text, values).fetchall()
    left = [_left(connection, records, claim) for claim in found]
    empty = [batch.number for batch in left if not batch.rows]
    if empty:  # all that was left of them is parked
        fence.row(connection, _FORGET, batches=empty)
    return [batch for batch in left if batch.rows]


def leave_out_held(batch: SequencedBatch, topics: TopicBook) -> bool:
    """Leave out the records whose topics are held; return whether there are others.

    They count as left all the same, so their claim stays.
    """
    sent = [
        pair for pair in zip(batch.rows, batch.clocks, strict=True) if not topics.fault(pair[0][1])
    ]
    batch.rows, batch.clocks = [row for row, _ in sent], [clock for _, clock in sent]
    return bool(sent)


def _left(
    connection: psycopg.Connection[Any], records: bytes, claim: tuple[Any, ...]
) -> SequencedBatch:
    number, producer, first, placement, ids, holes = claim
    cursor = connection.cursor(binary=True)
    rows = [
        row
        for row in cursor.execute(records, {"ids": ids}).fetchall()
        if not any(row[0] in hole for hole in holes)
    ]
    place = _places(ids)
    clocks = [first + place(row[0]) for row in rows]
    size = sum(len(row[3] or b"") for row in rows)
    return SequencedBatch(number, rows, size, producer, clocks, Placement.read(placement))


def _places(ids: Multirange[int]) -> Callable[[int], int]:
    """Return what says the how manieth of the ids one is: so its clock stays, whatever is gone."""
    before: list[tuple[int, int, int]] = []
    count = 0
    for part in ids:
        low, high = part.lower or 0, part.upper or 0
        before.append((low, high, count))
        count += high - low

    def place(sought: int) -> int:
        return next(n + sought - low for low, high, n in before if low <= sought < high)

    return place
