"""The first stage: mark records, in the order of their ids, by writing a claim for each batch.

It runs on a thread and a connection of its own, and is the one place that decides what goes into a
batch. It may block on the database, on Kafka where it asks for a topic it has not seen, and on the
window when enough is in flight.

Records come from three places, in this order:

    sweep   everything up to the head that no claim holds: records that were requeued or restored,
            came with a new part of the outbox, or waited behind a lane that is free again. Now and
            then, and when told to
    gaps    ids that were missing below the head and have appeared: transactions that committed late
    head    everything beyond the head

While a sweep is under way the head waits, so that what waited longer goes out first.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.harvest.batch import Key, Row
from harvest_dagster.harvest.gaps import GapWatch
from harvest_dagster.harvest.plain_claims import Claims
from harvest_dagster.harvest.stage import RejectedError, RemarkError, Round
from harvest_dagster.harvest.table_statements import Statements
from harvest_dagster.harvest.topic_book import TopicBook
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.postgres.statements import statements
from harvest_dagster.text import printable

_log = logging.getLogger(__name__)
_RUNNING = statements("harvest_dagster.harvest", "records.sql")["running"].text
_PARKED = statements("harvest_dagster.harvest", "parked.sql")
_LANES = _PARKED["lanes"].text

SWEEP_SECONDS = 60.0
_SWEEP_SHARE = 20
"""The head waits while a sweep runs, so a sweep that took long is followed by a pause so many times
as long."""
_LOOK_AT_LANES_SECONDS = 0.5
_ROOM_SECONDS = 0.1
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.018
_AHEAD = 2
"""Batches that wait for the publisher; more would only be smaller, at the cost of a claim each."""
_LOWEST = -(2**63)
_LARGE = 500_000
"""Only a record that may be too large for a topic is worth asking for the topic's limit."""
_OVERHEAD = 100


@dataclass(frozen=True, slots=True)
class MarkLimits:
    """How much is marked at once and in a round, and how often is a sweep.

    What is `compressed` may be smaller than it looks: Kafka alone can tell what is too large.
    """

    records: int
    size: int
    in_all: int | None
    compressed: bool
    sweep_seconds: float
    left: bool = False
    """Whether there are claims of `sequenced` for topics that are held."""


class Marker:
    """Marks for one round; `run` is the thread."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        sql: Statements,
        fence: Fence,
        topics: TopicBook,
        limits: MarkLimits,
        claims: Claims,
    ) -> None:
        self._connection, self._sql, self._fence = connection, sql, fence
        self._topics, self._limits = topics, limits
        self._claims = claims
        self._head: int | None = None
        self._asked_drawn = False
        self._gaps = GapWatch()
        self._sweep_from: int | None = None
        self._sweep_began = 0.0
        self._next_sweep = time.monotonic() + limits.sweep_seconds
        self._held_keys: dict[tuple[str, Key], int] = {}
        self._changes = 0
        self._parts: int | None = None
        self._next_look_at_lanes = 0.0
        self.marked = 0

    def run(self, round_: Round) -> None:
        """Mark until the round drains, or all that it may mark is marked."""
        if self._limits.in_all == 0:
            round_.batches.put(None)
            return
        self._load_lanes()
        pause = _SHORTEST_PAUSE
        least = max(1, self._limits.records // 2)
        while not (round_.draining.is_set() or self._has_marked_all()):
            records, size = round_.window.wait_for_room(least, _ROOM_SECONDS)
            if not records:
                continue
            if round_.batches.qsize() >= _AHEAD:
                round_.draining.wait(_SHORTEST_PAUSE)
                continue
            rows = self._next_rows(min(records, self._limits.records), size)
            if rows:
                self._hand_on(rows, round_)
                pause = _SHORTEST_PAUSE
            elif self._sweep_from is None:
                round_.draining.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        round_.batches.put(None)

    def _has_marked_all(self) -> bool:
        return self._limits.in_all is not None and self.marked >= self._limits.in_all

    def _next_rows(self, records: int, size: int) -> list[Row]:
        """Read what comes next, and leave out what has to wait."""
        self._look_at_lanes()
        if self._sweep_from is not None:
            return self._sweep(records, size)
        if self._gaps.wants_list():
            running, prepared = self._fetch(_RUNNING, {})[0]
            self._gaps.listed(set(running), set(prepared))
        return self._scan_head(records, size)

    def _scan_head(self, records: int, size: int) -> list[Row]:
        """Read beyond the head, and then look into the gaps.

        In that order, since whoever stashed one of the rows may have waited for a late commit: that
        is found then, and goes first. So does a part that was attached, whose ids may be below the
        head: who sees the rows sees it too. The rows are read again.
        """
        if self._head is None:
            return self._first_scan(records, size)
        rows = self._read(self._sql.head, records, size, after=self._head)
        if rows and rows[0][-1] != self._parts:
            self._parts = rows[0][-1]
            self._start_sweep()
            return []
        if self._gaps.wants_look(now=bool(rows)):
            late = self._look_into_gaps(records, size)
            if late:
                return late
        if not rows:
            return []
        self._gaps.see(self._head, [row[0] for row in rows])
        self._head = rows[-1][0]
        return self._sendable(rows)

    def _first_scan(self, records: int, size: int) -> list[Row]:
        """Find where the head is; whoever drew an id below it may still commit it."""
        rows = self._read(self._sql.head, records, size, after=_LOWEST)
        if rows:
            self._gaps.see_below(rows[0][0])
            self._gaps.see(rows[0][0] - 1, [row[0] for row in rows])
            self._head, self._parts = rows[-1][0], rows[0][-1]
            return self._sendable(rows)
        if not self._asked_drawn:
            self._asked_drawn = True
            (drawn,) = self._fetch(self._sql.drawn, {})[0]
            if drawn is not None:
                self._gaps.see_below(drawn + 1)
                self._head = drawn
        return []

    def _look_into_gaps(self, records: int, size: int) -> list[Row]:
        """Read what has appeared in the gaps, past all of it that can't be sent."""
        while True:
            started = time.monotonic()
            lows, highs = self._gaps.ranges()
            rows = self._read(self._sql.gaps, records, size, lows=lows, highs=highs)
            self._gaps.looked([row[0] for row in rows], started, complete=not rows)
            late = self._sendable(rows)
            if late or not rows:
                return late

    def _sweep(self, records: int, size: int) -> list[Row]:
        """Read the next part of a sweep; at its end, go back to the head."""
        rows = self._read(self._sql.sweep, records, size, after=self._sweep_from, head=self._head)
        if rows:
            self._sweep_from = rows[-1][0]
            self._gaps.taken([row[0] for row in rows])
            return self._sendable(rows)
        self._sweep_from = None
        ended = time.monotonic()
        rest = max(self._limits.sweep_seconds, _SWEEP_SHARE * (ended - self._sweep_began))
        self._next_sweep = ended + rest
        return []

    def _look_at_lanes(self) -> None:
        """Start a sweep if something that was set aside may go out now."""
        released = self._topics.released()
        if released:
            self._tell("released", {"topics": released})
            if self._limits.left:  # what is claimed for them goes out before all else
                raise RemarkError(f"{', '.join(released)} can be published to again")
            self._start_sweep()
        now = time.monotonic()
        if now >= self._next_look_at_lanes:
            self._next_look_at_lanes = now + _LOOK_AT_LANES_SECONDS
            (changes,) = self._fetch(self._sql.changes, self._fence.parameters)[0]
            if changes != self._changes:
                self._load_lanes()
                self._start_sweep()
        if now >= self._next_sweep and self._sweep_from is None:
            self._start_sweep()

    def _start_sweep(self) -> None:
        if self._head is not None:
            self._sweep_from, self._sweep_began = _LOWEST, time.monotonic()

    def _load_lanes(self) -> None:
        parameters = self._fence.parameters
        ((self._changes,),) = self._fetch(self._sql.changes, parameters)
        self._held_keys = {(t, _bytes(k)): i for t, k, i in self._fetch(_LANES, parameters)}
        self._topics.forget_limits()

    def _sendable(self, rows: list[Row]) -> list[Row]:
        """Leave out other shards' records, and those whose topic or key is held."""
        faults = {topic for topic in {row[1] for row in rows} if self._is_held(topic)}
        if faults or self._held_keys:
            rows = [row for row in rows if row[1] not in faults and not self._waits(row)]
        self._refuse_large(rows)
        return rows

    def _waits(self, row: Row) -> bool:
        """Return whether a record of its key that was before it is parked."""
        parked = self._held_keys.get((row[1], _bytes(row[2])))
        return parked is not None and parked < row[0]

    def _is_held(self, topic: str | None) -> bool:
        if topic is None:
            return True
        known = topic in self._topics.held
        fault = self._topics.fault(topic)
        if fault is not None and not known:
            self._tell("held", {"topic": topic, "reason": fault})
        return fault is not None

    def _tell(self, kind: str, detail: dict[str, object]) -> None:
        """Write down, and log, that a topic's records wait, or no longer do."""
        said = ", ".join(f"{key} {value}" for key, value in detail.items())
        _log.warning("%s: %s", kind, printable(said))
        self._fence.note(self._connection, kind, detail)

    def _refuse_large(self, rows: list[Row]) -> None:
        if self._limits.compressed:
            return
        rejected = []
        for row in rows:
            size = len(row[3] or b"") + len(row[2] or b"") + _OVERHEAD
            if size > _LARGE:
                limit = self._topics.limit(row[1])
                if limit is not None and size > limit:
                    reason = f"{size:,} bytes; topic {row[1]} takes {limit:,} (max.message.bytes)"
                    rejected.append((row, reason))
        if rejected:
            raise RejectedError(rejected)

    def _hand_on(self, rows: list[Row], round_: Round) -> None:
        """Write the claim, then let the batch go."""
        round_.check()
        batch = self._claims.claim(rows, sum(len(row[3] or b"") for row in rows))
        round_.window.take(batch)
        round_.batches.put(batch)
        self.marked += len(rows)

    def _read(self, sql: bytes, records: int, size: int, **more: Any) -> list[Row]:  # noqa: ANN401 - parameters
        parameters = {**self._fence.parameters, "limit": records, "bytes": size, **more}
        return self._fetch(sql, parameters)

    def _fetch(self, sql: Any, parameters: dict[str, Any]) -> list[Any]:  # noqa: ANN401 - SQL of any kind
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(sql, parameters).fetchall()


def _bytes(key: Key) -> bytes | None:
    return key.encode() if isinstance(key, str) else key
