"""Have what is in flight given up, and marked again by a tour that begins anew.

A foreign hand may not simply begin a new epoch: that would fence the tour which runs, and a harvest
of one process (`harvest reap`) would lead on without one. So whoever harvests is asked to end, in
the way that it can go on from:

    a tour of its own process (Dagster's)    drains; the sensor, which leads on, starts the next
    any other leader (`harvest reap`)        resigns; who is elected then, itself perhaps, begins

Either lets go out what still can within the drain's time. What does not is left marked, and the
next tour, under its new epoch, gives that up, marks it again and writes the remark down.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.clock import Deadline
from harvest_dagster.election.resign import led
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.events import read as read_events
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.postgres.statements import statements
from harvest_dagster.text import counted
from harvest_dagster.work import tours

_IN_FLIGHT = statements("harvest_dagster.harvest", "remark.sql")["in_flight"].text
_KINDS = ("remarked", "ambiguous")
_POLL_SECONDS = 0.2
_MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Remarked:
    """What came of it for a shard; `epoch` is the new one, or None where none has begun."""

    before: LeaseRow
    how: str
    in_flight: int
    epoch: int | None
    left: int
    remarked: int

    @property
    def done(self) -> bool:
        """Whether nothing is marked any more under the epoch of before, and another has begun."""
        return self.epoch is not None and not self.left

    def __str__(self) -> str:
        """Return what came of it, in a line."""
        shard, old = f"shard {self.before.shard}", f"epoch {self.before.epoch}"
        if self.epoch is None:
            return f"{shard}: {self.how}, but nobody has gone on from {old} yet"
        if self.left:
            return f"{shard}: {self.how}; {counted(self.left, 'record')} of {old} still marked"
        again = counted(self.remarked, "was", "were") if self.remarked else "none had to be"
        flying = counted(self.in_flight, "record was", "records were")
        return (
            f"{shard}: {self.how}; {flying} in flight under {old}, and"
            f" {again} marked again under epoch {self.epoch}"
        )


def remark(
    connection: psycopg.Connection[Any], name: str, shard: int | None, seconds: float
) -> list[Remarked]:
    """Ask who harvests a shard, or each, and wait for so long at most for the tours that follow.

    The connection is to be without transactions, so that each look sees what is new.
    """
    before = [row for row in led(connection, name, shard) if not row.expired]
    marked = {row.shard: _in_flight(connection, row) for row in before}
    asked = {row.shard: _ask(connection, row) for row in before}

    def look() -> list[Remarked]:
        return [_look(connection, row, asked[row.shard], marked[row.shard]) for row in before]

    deadline = Deadline(seconds)
    while not all(one.done for one in look()) and not deadline.over:
        time.sleep(_POLL_SECONDS)
    time.sleep(_POLL_SECONDS)  # a remark is written down just after it is made
    return look()


def _ask(connection: psycopg.Connection[Any], lease: LeaseRow) -> str:
    for tour in tours.read(connection, lease.name):
        if tour.shard == lease.shard and tour.alive:
            tours.ask_to_drain(connection, lease.name, lease.shard)
            return f"the tour of run {tour.run} was asked to end"
    leases.ask_to_resign(connection, lease.name, lease.shard)
    return f"{lease.holder} was asked to resign"


def _look(
    connection: psycopg.Connection[Any], before: LeaseRow, how: str, in_flight: int
) -> Remarked:
    epoch = next(
        (
            row.epoch
            for row in leases.read(connection, before.name)
            if row.shard == before.shard and row.epoch > before.epoch and not row.expired
        ),
        None,
    )
    left = _in_flight(connection, before)
    return Remarked(before, how, in_flight, epoch, left, _remarked(connection, before))


def _in_flight(connection: psycopg.Connection[Any], lease: LeaseRow) -> int:
    values = {"name": lease.name, "shard": lease.shard, "epoch": lease.epoch}
    row = connection.execute(_IN_FLIGHT, values).fetchone()
    return row[0] if row else 0


def _remarked(connection: psycopg.Connection[Any], before: LeaseRow) -> int:
    events = read_events(connection, before.name, _KINDS, limit=_MOST_EVENTS)
    return sum(
        int(event.detail.get("records", 0))
        for event in events
        if event.shard == before.shard and (event.epoch or 0) > before.epoch
    )
