"""Change the leader: ask whoever leads to hand over, and wait for who leads then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import LeaseRow

RESIGN_SECONDS = 15.0
"""How long a hand-over takes at most, if another candidate, or the same one, can lead."""
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class HandOver:
    """A shard's lease when its holder was asked to go, and the one that followed, if any."""

    before: LeaseRow
    after: LeaseRow | None

    def __str__(self) -> str:
        """Return who led, and who leads now, in a line."""
        old, new, shard = self.before, self.after, self.before.shard
        if new is None:
            return (
                f"shard {shard}: nobody has taken over from {old.holder}; {end_of(old)} when asked"
            )
        if new.holder == old.holder:
            return f"shard {shard}: {new.holder} leads again, epoch {new.epoch}: no other stands"
        return f"shard {shard}: {new.holder} leads now, epoch {new.epoch}, after {old.holder}"


def resign(
    connection: psycopg.Connection[Any],
    name: str,
    shard: int | None = None,
    seconds: float = RESIGN_SECONDS,
) -> list[HandOver]:
    """Ask the leaders of a shard, or of all, and wait for so long at most.

    Where nobody leads nobody is asked, and a HarvestStateError tells so. Each look is a transaction
    of its own, so that a connection with transactions does not look at the past.
    """
    before = _ask(connection, name, shard)
    after = _wait(connection, before, seconds)
    return [HandOver(old, after.get(old.shard)) for old in before]


def end_of(row: LeaseRow) -> str:
    """Return when a lease ends, or when it has."""
    if row.expired:
        return f"expired {-row.expires_in_seconds:,.0f} s ago"
    return f"good for {row.expires_in_seconds:,.1f} s"


def _ask(connection: psycopg.Connection[Any], name: str, shard: int | None) -> list[LeaseRow]:
    rows = led(connection, name, shard)
    for row in rows:
        leases.ask_to_resign(connection, row.name, row.shard)
    connection.commit()
    return rows


def led(connection: psycopg.Connection[Any], name: str, shard: int | None) -> list[LeaseRow]:
    """Read the leases of a shard, or of all; raise unless somebody leads one of them."""
    rows = [row for row in leases.read(connection, name) if shard in {None, row.shard}]
    what = name if shard is None else f"shard {shard} of {name}"
    if not rows:
        raise HarvestStateError(f"nobody has led {what} yet: see `harvest lease show`")
    if all(row.expired for row in rows):
        ends = "; ".join(f"shard {row.shard} {end_of(row)}" for row in rows)
        raise HarvestStateError(
            f"nobody leads {what}: {ends}; start `harvest reap`, or turn the sensor on"
        )
    return rows


def _wait(
    connection: psycopg.Connection[Any], before: list[LeaseRow], seconds: float
) -> dict[int, LeaseRow]:
    """Wait until each shard is acquired anew, within a bound; return the new leases by shard."""
    since = {row.shard: row.acquired_at for row in before}
    deadline = Deadline(seconds)
    while True:
        rows = leases.read(connection, before[0].name)
        connection.commit()
        after = {
            row.shard: row
            for row in rows
            if row.acquired_at > since.get(row.shard, row.acquired_at)
        }
        if len(after) == len(before) or deadline.over:
            return after
        time.sleep(_POLL_SECONDS)
