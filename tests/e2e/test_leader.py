"""The sensor leads and the tour harvests, whatever happens to them; on a real `dagster dev`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.support.account import Reader
from tests.support.dagster_dev import dagster_dev
from tests.support.place import Place
from tests.support.project import Project
from tests.support.shop import (
    GAP_SECONDS,
    GOOD_TOUR,
    SENSOR,
    TOUR,
    Account,
    Shop,
    kill_code_server,
    kill_worker,
    longest_gap,
    one_leader_at_a_time,
    reload,
    terminate,
)
from tests.support.ui import until


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    """A shop of this test's own."""
    place = Place(project.postgres, dict(project.servers.kafka_config))
    with dagster_dev(project) as running:
        yield Shop(running, place)
    place.drop_topic(place.topic)


LEASE_KINDS = {"acquired", "refreshed", "revoked", "fenced"}
Fault = Callable[[Shop], None]
FAULTS = [
    pytest.param([terminate, kill_worker], id="run"),
    pytest.param([reload, kill_code_server], id="code_server"),
]


@pytest.mark.long
@pytest.mark.parametrize("faults", FAULTS)
def test_it_goes_on(shop: Shop, faults: list[Fault]) -> None:
    """Whatever happens another tour goes on, and readers see all, once, in order."""
    with Account(shop.place) as account:
        until(shop.publishes, what="a tour publishes")
        for fault in faults:
            _disturb(shop, fault, account.reader)
            until(lambda: GOOD_TOUR in shop.told(), what="a tick tells that the tour runs")
        account.settle()
    assert one_leader_at_a_time(shop)


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
    start = time.monotonic()
    until(shop.turns_off, what="leadership is handed over")
    assert time.monotonic() - start < 30
    assert shop.kinds()[-1] == "revoked"
    lease = shop.dagster.ui.checks
    until(lambda: lease("harvest/lease")["one_leader"].passed is False, what="one_leader is red")
    run = shop.dagster.ui.runs(TOUR, 1)[0].id
    assert shop.dagster.ui.wait_for_run(run) == "SUCCESS"
    shop.place.put(10)
    shop.dagster.ui.start_sensor(SENSOR)
    until(lambda: shop.goes_on(first), what="another tour goes on")
    until(lambda: lease("harvest/lease")["one_leader"].passed, what="one_leader is green again")
    captured = shop.dagster.project.home / "dagster" / "logs" / "__repository__"
    files = {path.with_suffix("") for path in captured.rglob("*") if path.is_file()}
    assert 0 < len(files) < len(shop.dagster.ui.ticks(SENSOR, 1000))  # none without news


def _assets_tell(shop: Shop) -> None:
    """Figures, lease events and checks are there, and a check turns red and green again."""
    ui, place = shop.dagster.ui, shop.place
    place.put(300)
    until(lambda: _newest(shop, "harvest/outbox").get("published") == 300, what="figures")
    events = [event.metadata for event in ui.observations("harvest/lease")]
    assert {"acquired", "refreshed"} <= {event["what"] for event in events}
    newest_first = [row["what"] for row in events[0]["history"]]
    happened = [kind for kind in shop.kinds() if kind in LEASE_KINDS]
    assert newest_first == happened[: len(newest_first)][::-1]
    assert {"acquired", "refreshed"} <= {*newest_first}
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
    gap = longest_gap(reader, lambda: shop.goes_on(before))
    logging.getLogger(__name__).info("%s: nothing came for %.1f s", fault.__name__, gap)
    assert gap < GAP_SECONDS, f"{fault.__name__}: nothing came for {gap:.1f} s"


def _newest(shop: Shop, asset: str) -> dict[str, Any]:
    found = shop.dagster.ui.observations(asset, 1)
    return found[0].metadata if found else {}
