"""A shop at work around a `dagster dev`: what disturbs it, and the account afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import psutil

from harvest_dagster.ledger import events
from harvest_dagster.ledger import lease as leases
from harvest_dagster.work import tours
from harvest_dagster.work.tours import TourRow
from tests.support.account import Reader, judge
from tests.support.dagster_dev import DagsterDev
from tests.support.load import Load
from tests.support.place import Place
from tests.support.ui import POLL, until

SENSOR, TOUR = "harvest_leader", "harvest_tour"
GOOD_TOUR = "tour running for"
PATIENCE_SECONDS = 120.0
LARGE = 9_000
"""More bytes than a narrow topic of these tests takes."""
GAP_SECONDS = 20.0
"""For so long at most nothing is delivered, whatever of Dagster's has died."""


@dataclass
class Shop:
    """A writer that never rests, a reader that reads along, and the Dagster in between."""

    dagster: DagsterDev
    place: Place

    @property
    def name(self) -> str:
        """What the harvest is called."""
        return str(self.place.rows("SELECT name FROM harvest.lease")[0][0])

    def tour(self) -> TourRow | None:
        """What the tour says of itself, while it is alive."""
        rows = self.place.rows("SELECT name FROM harvest.tour")
        if not rows:
            return None
        with self.place.connect() as connection:
            (found,) = tours.read(connection, rows[0][0])
        return found if found.alive else None

    def publishes(self) -> bool:
        """Whether a tour has published something."""
        now = self.tour()
        return now is not None and now.done > 0

    def resigned(self) -> bool:
        """Whether nobody leads."""
        with self.place.connect() as connection:
            return all(row.expired for row in leases.read(connection))

    def turns_off(self) -> bool:
        """Toggle the sensor off, and again where that was lost; tell whether nobody leads then.

        Dagster's daemon reads a sensor's state, and writes it back when a tick begins or ends: what
        is pressed in between is lost.
        """
        runs = self.dagster.ui.sensor_runs(SENSOR)
        if runs:
            self.dagster.ui.stop_sensor(SENSOR)
        return not runs and self.resigned()

    def kinds(self) -> list[str]:
        """What happened, oldest first."""
        with self.place.connect() as connection:
            return [event.kind for event in events.read(connection, limit=1000)][::-1]

    def goes_on(self, after: TourRow) -> bool:
        """Whether another tour publishes what waits."""
        now = self.tour()
        return now is not None and now.id != after.id and now.done > 0

    def told(self) -> str:
        """What the newest tick said."""
        return self.dagster.ui.ticks(SENSOR, 1)[0].said or ""


def worker(shop: Shop) -> psutil.Process | None:
    """Find the process of the tour's run: it is what holds the tour's connections."""
    query = "SELECT client_port FROM pg_stat_activity WHERE application_name LIKE 'harvest % watch'"
    ports = {port for (port,) in shop.place.rows(query)}
    for process in shop.dagster.processes():
        with suppress(psutil.NoSuchProcess):  # one of an earlier tour, ending just now
            if ports & {found.laddr[1] for found in process.net_connections("tcp")}:
                return process
    return None


def kill_worker(shop: Shop) -> None:
    """Kill the run's process, without a word."""
    found = until(lambda: worker(shop), what="the tour's process is seen")
    assert found is not None
    found.kill()


def kill_code_server(shop: Shop) -> None:
    """Kill the process that holds leadership, and what it has started."""
    with shop.place.connect() as connection:
        holder = leases.read(connection)[0].holder
    process = psutil.Process(int(holder.split(":")[1]))
    for each in [process, *process.children(recursive=True)]:
        each.kill()


def terminate(shop: Shop) -> None:
    """Press `Terminate` on the run's page."""
    shop.dagster.ui.terminate(shop.dagster.ui.runs(TOUR, 1)[0].id)


def reload(shop: Shop) -> None:
    """Press `Reload` of the code location."""
    shop.dagster.ui.reload()


class Account:
    """Writes and reads all the while; then judges that all came, once and in order."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.reader, self._load = Reader(place.kafka, place.topic), Load(place, 10, 0.1)
        self._settled = False

    def __enter__(self) -> Self:
        return self

    def settle(self) -> None:
        """Stop writing, wait until all is read, and judge; call it while something harvests."""
        self._load.stop()
        with suppress(AssertionError):  # if it is not, that is what is judged below
            until(lambda: len(self.reader.found) >= len(self._place.stashed), what="all is read")
        self._settled = True
        judge(self._place.stashed, self.reader.stop(), "exactly_once")

    def __exit__(self, *_: object) -> None:
        if not self._settled:
            self._load.stop()
            self.reader.stop()


def longest_gap(reader: Reader, over: Callable[[], bool]) -> float:
    """Wait until it is over; tell the longest time in which no message came."""
    last, count, longest = time.monotonic(), len(reader.found), 0.0
    ends = time.monotonic() + PATIENCE_SECONDS
    while not over() or len(reader.found) == count:
        assert time.monotonic() < ends, f"it does not go on within {PATIENCE_SECONDS} s"
        if len(reader.found) > count:
            last, count = time.monotonic(), len(reader.found)
        longest = max(longest, time.monotonic() - last)
        time.sleep(POLL)
    return longest


def one_leader_at_a_time(shop: Shop) -> bool:
    """Epochs only grow: no event of an older epoch comes after one of a newer acquisition."""
    with shop.place.connect() as connection:
        found = events.read(connection, limit=1000)[::-1]
    taken = [event.epoch or 0 for event in found if event.kind in {"acquired", "refreshed"}]
    return taken == sorted(set(taken))
