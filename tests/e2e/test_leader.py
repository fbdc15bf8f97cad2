"""The sensor leads and the tour harvests, whatever happens to them; on a real `dagster dev`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
import pytest

from harvest_dagster.election import history
from harvest_dagster.election import lease as leases
from harvest_dagster.harvest import tours
from harvest_dagster.harvest.tours import TourRow
from tests.e2e.dagster_dev import DagsterDev, dagster_dev
from tests.e2e.project import Project
from tests.e2e.ui import POLL, until
from tests.integration.harvest.account import Reader, judge
from tests.integration.harvest.load import Load
from tests.integration.harvest.place import Place

SENSOR, TOUR = "harvest_leader", "harvest_tour"
GOOD_TOUR = "tour running for"
PATIENCE_SECONDS = 120.0


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

    def resigned(self) -> bool:
        """Whether nobody leads."""
        with self.place.connect() as connection:
            return all(row.expired for row in leases.read(connection))

    def kinds(self) -> list[str]:
        """What happened, oldest first."""
        with self.place.connect() as connection:
            return [event.kind for event in history.read(connection, limit=1000)][::-1]

    def goes_on(self, after: TourRow) -> bool:
        """Whether another tour publishes what waits."""
        now = self.tour()
        return now is not None and now.id != after.id and now.published > 0

    def told(self) -> str:
        """What the newest tick said."""
        return self.dagster.ui.ticks(SENSOR, 1)[0].said or ""


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    """A shop of this test's own."""
    place = Place(project.postgres, dict(project.servers.kafka_config))
    with dagster_dev(project) as running:
        yield Shop(running, place)
    place.drop_topic(place.topic)


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


Fault = Callable[[Shop], None]
FAULTS = [
    pytest.param([terminate, kill_worker], id="run"),
    pytest.param([reload, kill_code_server], id="code_server"),
]


@pytest.mark.long
@pytest.mark.parametrize("faults", FAULTS)
def test_it_goes_on(shop: Shop, faults: list[Fault]) -> None:
    """Whatever happens another tour goes on, and readers see all, once, in order."""
    reader = Reader(shop.place.kafka, shop.place.topic)
    load = Load(shop.place, count=10, pause=0.1)
    try:
        until(lambda: (t := shop.tour()) is not None and t.published > 0, what="a tour publishes")
        for fault in faults:
            _disturb(shop, fault, reader)
            until(lambda: GOOD_TOUR in shop.told(), what="a tick tells that the tour runs")
    finally:
        load.stop()
        with suppress(AssertionError):  # if it is not, that is what is judged below
            until(lambda: len(reader.found) >= len(shop.place.stashed), what="all is read")
        found = reader.stop()
    judge(shop.place.stashed, found, "exactly_once")
    assert _one_leader_at_a_time(shop)


def test_what_is_seen_and_pressed(shop: Shop) -> None:
    """Figures and checks tell how it is; what can't be reached is said; off and on work."""
    until(lambda: shop.tour() is not None, what="a tour runs")
    _assets_tell(shop)
    _says_that_the_database_is_gone(shop)
    _goes_off_and_on(shop)


def _goes_off_and_on(shop: Shop) -> None:
    """Toggled off it hands over within 30 s, with nothing left in flight; on, it leads again."""
    first = shop.tour()
    assert first is not None
    shop.dagster.ui.stop_sensor(SENSOR)
    start = time.monotonic()
    until(shop.resigned, what="leadership is handed over")
    assert time.monotonic() - start < 30
    assert shop.kinds()[-1] == "revoked"
    run = shop.dagster.ui.runs(TOUR, 1)[0].id
    assert shop.dagster.ui.wait_for_run(run) == "SUCCESS"
    shop.place.put(10)
    shop.dagster.ui.start_sensor(SENSOR)
    until(lambda: shop.goes_on(first), what="another tour goes on")


def _assets_tell(shop: Shop) -> None:
    """Figures, lease events and checks are there, and a check turns red and green again."""
    ui, place = shop.dagster.ui, shop.place
    place.put(300)
    until(lambda: _newest(shop, "harvest/outbox").get("published") == 300, what="figures")
    events = [event.metadata for event in ui.observations("harvest/lease")]
    assert {"acquired", "refreshed"} <= {event["what"] for event in events}
    assert events[0]["history"][0]["what"] == "refreshed"
    until(lambda: ui.checks("harvest/lease")["one_leader"].passed, what="one_leader is green")
    missing = place.put(1)[0]._replace(topic=f"{place.topic}-missing")
    place.stash([missing])
    until(lambda: ui.checks("harvest/outbox")["topics_open"].passed is False, what="it is red")
    place.new_topic(missing.topic)
    until(lambda: ui.checks("harvest/outbox")["topics_open"].passed, what="it is green again")
    place.drained()
    place.drop_topic(missing.topic)
    run = ui.runs(TOUR, 1)[0].id
    said = [line.message for line in ui.run_log(run)]
    assert any(line.startswith("held: ") for line in said)
    assert any(line.startswith("released: ") for line in said)


def _says_that_the_database_is_gone(shop: Shop) -> None:
    """What a tick can't reach it says, and the next ticks go on when it is there again."""
    url = shop.place.postgres
    name = url.rpartition("/")[2].partition("?")[0]
    admin = url.replace(f"/{name}", "/postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        until(lambda: "not currently accepting connections" in shop.told(), what="a tick says so")
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    shop.place.put(10)
    until(lambda: GOOD_TOUR in shop.told(), what="a tour runs again")
    shop.place.drained(120)


def _disturb(shop: Shop, fault: Fault, reader: Reader) -> None:
    before = shop.tour()
    assert before is not None
    fault(shop)
    gap = _longest_gap(reader, lambda: shop.goes_on(before))
    logging.getLogger(__name__).info("%s: nothing came for %.1f s", fault.__name__, gap)


def _longest_gap(reader: Reader, over: Callable[[], bool]) -> float:
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


def _newest(shop: Shop, asset: str) -> dict[str, Any]:
    found = shop.dagster.ui.observations(asset, 1)
    return found[0].metadata if found else {}


def _one_leader_at_a_time(shop: Shop) -> bool:
    """Epochs only grow: no event of an older epoch comes after one of a newer acquisition."""
    with shop.place.connect() as connection:
        events = history.read(connection, limit=1000)[::-1]
    taken = [event.epoch or 0 for event in events if event.kind in {"acquired", "refreshed"}]
    return taken == sorted(set(taken))
