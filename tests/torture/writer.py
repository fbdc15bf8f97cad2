"""A writer: one transaction after another, of all kinds, through the proxy; each is written down.

What became of a transaction stands in a journal of its own: `acknowledged` by PostgreSQL, `undone`
(rolled back, or cut off before its commit was asked for), or `unknown`: the answer never came.
Truth is in the ledger, a table that the same transaction writes to.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import psycopg

from harvest_dagster import Message, stash
from tests.torture.child import Line, job, listen, say
from tests.torture.lanes import BIG_TOPIC, HOT, TOPIC, own, own_big
from tests.torture.proof import Proof, message

SIZES = ((1, 1, 40), (2, 20, 40), (21, 150, 15), (151, 750, 5))
"""How many messages a transaction has: from, to, and how often that is so in a hundred."""
ROLLED_BACK, SLOW, KEYLESS, TOMBSTONE = 0.1, 0.08, 0.03, 0.05
HOT_AT_ALL, SLOW_AND_HOT = 0.4, 0.1
BIG_EVERY_SECONDS, BIG_ONES = 8.0, 2
LONGEST_PAUSE_SECONDS = 2.5
RETRY_SECONDS = 0.2
MOST_BEHIND_SECONDS = 2.0

_LOCK = """
    SELECT FROM torture.lane JOIN unnest(%s::text[], %s::text[]) AS w(topic, key)
     USING (topic, key) ORDER BY topic, key FOR UPDATE OF lane
"""
_COUNT = """
    UPDATE torture.lane SET last = last + w.n
      FROM unnest(%s::text[], %s::text[], %s::int[]) AS w(topic, key, n)
     WHERE lane.topic = w.topic AND lane.key = w.key
    RETURNING lane.topic, lane.key, lane.last - w.n
"""
_ENTER = "INSERT INTO torture.ledger VALUES (%s, %s)"

Lane = tuple[str, str | None]


class Planned(NamedTuple):
    """A transaction as it is to be."""

    tx: int
    lanes: list[Lane]
    undone: bool
    pause: float


class Writer:
    """Writes until told to end."""

    def __init__(self, given: Line, journal: TextIO) -> None:
        self._given, self._journal = given, journal
        self._number = given["writer"]
        self._random = random.Random(f"{given['seed']}/{self._number}")  # noqa: S311 - to be repeated
        self._keys, self._big_keys = own(self._number), own_big(self._number)
        self._connection: psycopg.Connection[Any] | None = None
        self._next_big = 0.0
        self._counts: Counter[str] = Counter()
        self._messages = 0
        self.ending = threading.Event()

    def run(self) -> None:
        """Write at the rate that was asked for, as far as PostgreSQL lets."""
        tx, due = self._number * 10**9, time.monotonic()
        while not self.ending.is_set():
            tx += 1
            planned = self._plan(tx)
            outcome = self._attempt(planned)
            self._journal.write(f"{tx} {outcome}\n")
            self._journal.flush()
            self._counts[outcome] += 1
            self._messages += len(planned.lanes) if outcome == "acknowledged" else 0
            say("wrote", messages=self._messages, **self._counts)
            due = max(due, time.monotonic() - MOST_BEHIND_SECONDS)
            due += len(planned.lanes) / self._given["rate"]
            self.ending.wait(max(0.0, due - time.monotonic()))

    def _plan(self, tx: int) -> Planned:
        dice = self._random
        low, high, _ = dice.choices(SIZES, [share for *_, share in SIZES])[0]
        pause = dice.uniform(0.05, LONGEST_PAUSE_SECONDS) if dice.random() < SLOW else 0.0
        # Whoever pauses with a hot key holds up all writers, so that is to be rare.
        hot = dice.random() < (SLOW_AND_HOT if pause else HOT_AT_ALL)
        lanes = [self._lane(hot=hot) for _ in range(dice.randint(low, high))]
        if time.monotonic() > self._next_big:
            self._next_big = time.monotonic() + BIG_EVERY_SECONDS
            lanes += [(BIG_TOPIC, dice.choice(self._big_keys)) for _ in range(BIG_ONES)]
        return Planned(tx, lanes, dice.random() < ROLLED_BACK, pause)

    def _lane(self, *, hot: bool) -> Lane:
        if self._random.random() < KEYLESS:
            return TOPIC, None
        keys = HOT if hot and self._random.random() < HOT_AT_ALL else self._keys
        return TOPIC, self._random.choice(keys)

    def _attempt(self, planned: Planned) -> str:
        """Do a transaction; tell what became of it, as far as can be known here."""
        asked = False
        try:
            connection = self._connected()
            self._write(connection, planned)
            if planned.undone:
                connection.rollback()
                return "undone"
            asked = True
            connection.commit()
        except psycopg.Error:
            self._disconnect()
            self.ending.wait(RETRY_SECONDS)
            return "unknown" if asked else "undone"
        return "acknowledged"

    def _write(self, connection: psycopg.Connection[Any], planned: Planned) -> None:
        places = self._places(connection, planned.lanes)
        connection.execute(_ENTER, (planned.tx, len(planned.lanes)))
        stash(connection, list(self._messages_of(planned, places)))
        if planned.pause:
            self.ending.wait(planned.pause)

    def _places(self, connection: psycopg.Connection[Any], lanes: list[Lane]) -> dict[Lane, int]:
        """Lock the lanes, and only then draw ids: so a lane's order is that of its commits."""
        wanted = Counter(lane for lane in lanes if lane[1] is not None)
        topics, keys = [topic for topic, _ in wanted], [key for _, key in wanted]
        connection.execute(_LOCK, (topics, keys))
        found = connection.execute(_COUNT, (topics, keys, list(wanted.values()))).fetchall()
        return {(topic, key): last for topic, key, last in found}

    def _messages_of(self, planned: Planned, places: dict[Lane, int]) -> Any:
        at_ms = int(time.time() * 1000)
        for number, lane in enumerate(planned.lanes):
            topic, key = lane
            place = 0
            if key is not None:
                places[lane] += 1
                place = places[lane]
            yield self._message(topic, key, Proof(planned.tx, number, place, at_ms))

    def _message(self, topic: str, key: str | None, proof: Proof) -> Message:
        dice = self._random
        if dice.random() < TOMBSTONE and key is not None:
            return message(topic, key, None, proof)
        size = dice.randint(20, 300)
        if topic == BIG_TOPIC:
            size = dice.randint(20_000, 700_000)
        return message(topic, key, dice.randbytes(32) * (size // 32), proof)

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._given["postgres"], connect_timeout=10, application_name="torture writer"
            )
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def main() -> None:
    """Write until the bench says that it is enough, or is gone."""
    given = job()
    with Path(given["journal"]).open("a", encoding="utf-8") as journal:
        writer = Writer(given, journal)
        listen(lambda _line: writer.ending.set(), lambda: os._exit(1))
        writer.run()


if __name__ == "__main__":
    main()
