"""One connection or another is cut in the midst of its statement, or waits for a lock in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.deliveries import ALL, DELIVERIES
from tests.support.faults import BUSY, database_set, locked, settle, terminate
from tests.support.waiting import until

if TYPE_CHECKING:
    from harvest_dagster.embedded import Servers
    from tests.support.place import Place
    from tests.support.running import StartHarvest

LOCKED_ROWS = "SELECT FROM outbox FOR UPDATE"
NEXT_CLAIMS = """
    INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)
    SELECT lease.name, lease.shard, lease.epoch, number, '{}', 0
      FROM harvest.lease, generate_series(1, 5000) AS number
        ON CONFLICT DO NOTHING
"""
HELD_UP = {
    "mark": NEXT_CLAIMS,
    "purge": LOCKED_ROWS,
    "refresh": "SELECT FROM harvest.lease FOR UPDATE",
    "candidate": "SELECT FROM harvest.lease FOR UPDATE",
}
"""What keeps a statement of each connection waiting."""
TIMES = 3
LONG = pytest.mark.long


def cut_a_round(place: Place) -> None:
    """Cut both connections of a round: either stage may be waiting for the other just now."""
    for stage in ("mark", "purge"):
        terminate(place, f"harvest %{stage}")


def waits(place: Place, stage: str) -> bool:
    """Tell whether a statement of a stage waits for a lock; see to it that there is one."""
    if stage == "refresh":  # it comes after another has failed
        cut_a_round(place)
    return place.is_waiting(f"harvest %{stage}")


@ALL
@pytest.mark.parametrize(
    "stage", ["mark", "purge", *(pytest.param(n, marks=LONG) for n in ("refresh", "candidate"))]
)
def test_cut_in_the_midst_of_a_statement(
    place: Place, start_harvest: StartHarvest, delivery: str, stage: str
) -> None:
    """A stage whose connection is cut while its statement runs, several times, is made up for."""
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.events("tour_started"))
    for _ in range(TIMES):
        place.put(2000)
        with locked(place, HELD_UP[stage]):
            until(lambda: waits(place, stage))
            assert terminate(place, f"harvest %{stage}")
        settle(place, delivery)


@ALL
def test_cut_while_it_recovers(place: Place, start_harvest: StartHarvest, delivery: str) -> None:
    """A leader that is cut off while it settles what a round has left begins to settle anew."""
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.events("tour_started"))
    for _ in range(TIMES):
        place.put(2000)
        with locked(place, "LOCK TABLE harvest.claim IN EXCLUSIVE MODE"):
            refreshed = len(place.events("refreshed"))
            cut_a_round(place)
            until(lambda: len(place.events("refreshed")) > refreshed)  # noqa: B023 - called at once
            until(lambda: waits(place, "purge"))  # no record is purged before that is over
            assert terminate(place, "harvest %purge")
        settle(place, delivery)


@DELIVERIES
def test_locks_that_are_not_had_in_time(
    place: Place, servers: Servers, start_harvest: StartHarvest, delivery: str
) -> None:
    """While locks are refused, after the time that PostgreSQL is set to, the leader tries again."""
    place.put(3000)
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.waiting() < 2500)
    with database_set(place, servers, "lock_timeout", "'50ms'"), locked(place, LOCKED_ROWS):
        until(lambda: str(place.events("refreshed")).count("lock timeout") >= TIMES)
    settle(place, delivery)
