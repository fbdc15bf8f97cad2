"""Clocks that jump: who leads, and what goes out, follows from none of them.

The clock of this process is Python's `time.time`, which is put forward and back while a harvest
runs in here. PostgreSQL's clock can't be set by a test: what it has written down is moved instead,
so that it looks as it would after a jump. (The machine's own clock that only goes forward, on which
trust in a lease does depend, does not jump.)
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.deliveries import DELIVERIES
from tests.support.faults import BUSY, busy, settle
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.load import Load
    from tests.support.place import Place
    from tests.support.running import Spawn, StartHarvest

YEAR = 365 * 86_400.0
JUMPS = (YEAR, -YEAR, 3600.0, -3600.0, 7.0, -7.0)
STANDBY_SECONDS = 25.0
"""A session of 6 s, and what a busy machine adds to it."""
MOVED = {
    "harvest.lease": ("acquired_at", "renewed_at", "expires_at"),
    "harvest.claim": ("marked_at",),
    "outbox": ("create_time",),
}


def move(place: Place, seconds: float) -> None:
    """Move all that PostgreSQL has written down of its clock."""
    by = f"make_interval(secs => {seconds})"
    for table, columns in MOVED.items():
        changes = ", ".join(f"{column} = {column} + {by}" for column in columns)
        place.rows(f"UPDATE {table} SET {changes}")


@pytest.mark.long
@DELIVERIES
def test_the_clock_of_the_process_jumps(
    place: Place,
    start_harvest: StartHarvest,
    load: Load,
    monkeypatch: pytest.MonkeyPatch,
    delivery: str,
) -> None:
    """A leader whose clock goes forward and back by hours and years leads on, and publishes."""
    offset, wall = [0.0], time.time
    monkeypatch.setattr(time, "time", lambda: wall() + offset[0])
    running = start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(running.harvest.is_leader)
    for jump in JUMPS:
        offset[0] = jump
        purged = running.harvest.totals().purged
        place.renewed(times=2)
        until(lambda: running.harvest.totals().purged > purged)  # noqa: B023 - called at once
    load.stop()
    settle(place, delivery)
    assert place.kinds("acquired", "fenced", "revoked", "refreshed") == ["acquired"]


@DELIVERIES
def test_the_clock_of_postgresql_jumps(
    place: Place, start_harvest: StartHarvest, load: Load, delivery: str
) -> None:
    """Leases that look long expired, or not yet begun, change nobody's mind about who leads."""
    leader, standby = (
        start_harvest(place.config(delivery=delivery, limits=BUSY)) for _ in range(2)
    )
    until(lambda: leader.harvest.is_leader() or standby.harvest.is_leader())
    for jump in JUMPS:
        move(place, jump)
        place.renewed()
    load.stop()
    settle(place, delivery)
    assert place.kinds("acquired", "fenced", "revoked", "refreshed") == ["acquired"]


@pytest.mark.long
@DELIVERIES
def test_a_lease_of_years_holds_nobody_up(place: Place, spawn: Spawn, delivery: str) -> None:
    """When a leader dies whose lease seems to last for years, another takes over all the same."""
    place.put(4000)
    leader = spawn(busy(place, delivery))
    until(lambda: leader.find("LeaderAcquired"))
    standby = spawn(busy(place, delivery))
    until(lambda: place.waiting() < 3500 and standby.find("started"))
    leader.signal(signal.SIGSTOP)
    move(place, YEAR)
    leader.kill()
    until(lambda: standby.find("LeaderAcquired"), STANDBY_SECONDS)
    settle(place, delivery)
