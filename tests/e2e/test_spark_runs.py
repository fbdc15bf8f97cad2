"""Spark's assets as they are run from the UI: cancelled, and back-filled with a day that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.e2e.dagster_dev import DagsterDev, dagster_dev
from tests.e2e.project import Project
from tests.e2e.shop import Shop
from tests.e2e.ui import PARTITION, until
from tests.integration.harvest.place import Place

pytestmark = pytest.mark.long

DAYS = ("2026-10-05", "2026-10-06", "2026-10-07")
SALES = ("till_orders", "till_payments", "clean_orders", "daily_sales")
ENDLESS = {"ops": {"tills": {"config": {"orders": 2_000_000_000}}}}


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    """A shop whose outbox nobody harvests, so that what was stashed can be counted."""
    place = Place(project.postgres, dict(project.servers.kafka_config))
    with dagster_dev(project) as running:
        shop = Shop(running, place)
        until(shop.turns_off, what="nobody harvests")
        yield shop
    place.drop_topic(place.topic)


def sparks(running: DagsterDev) -> list[psutil.Process]:
    """The Sparks of all runs."""
    return [each for each in running.processes() if each.name() == "java"]


def stashed(shop: Shop) -> dict[str, int]:
    """How many customers' sums of each day wait in the outbox."""
    query = """SELECT convert_from(kafka_value, 'UTF8')::json ->> 'day', count(*)
                 FROM outbox WHERE kafka_topic = 'daily-sales' GROUP BY 1"""
    return dict(shop.place.rows(query))


def test_cancelled(shop: Shop) -> None:
    """Terminate in the UI ends Spark's job and Spark; the day can be run again."""
    ui, day = shop.dagster.ui, DAYS[0]
    run = ui.launch_assets("till_orders", "till_payments", config=ENDLESS, partition=day)
    until(lambda: any(_busy(each) for each in sparks(shop.dagster)), what="Spark is at work")
    ui.terminate(run)
    assert ui.wait_for_run(run) == "CANCELED"
    until(lambda: not sparks(shop.dagster), 20, "Spark is gone")
    again = ui.launch_assets(*SALES, partition=day)
    assert ui.wait_for_run(again) == "SUCCESS"
    assert stashed(shop).keys() == {day}


def test_a_day_that_fails(shop: Shop) -> None:
    """It leaves neither rows nor messages, the others are whole, and it can be run again."""
    ui, place = shop.dagster.ui, shop.place
    assert ui.wait_for_run(ui.launch_assets(*SALES, partition=DAYS[0])) == "SUCCESS"
    place.rows(f"ALTER TABLE daily_sales ADD CONSTRAINT not_now CHECK (day <> '{DAYS[1]}')")
    assert ui.backfill(SALES, DAYS[1:]) == "COMPLETED_FAILED"
    failed = [run for run in ui.runs() if run.status == "FAILURE"]
    assert {run.tags[PARTITION] for run in failed} == {DAYS[1]}
    assert any("not_now" in (line.error or "") for line in ui.run_log(failed[0].id))
    assert stashed(shop).keys() == _days(place) == {DAYS[0], DAYS[2]}
    place.rows("ALTER TABLE daily_sales DROP CONSTRAINT not_now")
    assert ui.backfill(SALES, DAYS[1:]) == "COMPLETED_SUCCESS"
    counts = dict(place.rows("SELECT day::text, count(*) FROM daily_sales GROUP BY 1"))
    assert counts == stashed(shop)
    assert counts.keys() == {*DAYS}


def _days(place: Place) -> set[Any]:
    return {day for (day,) in place.rows("SELECT DISTINCT day::text FROM daily_sales")}


def _busy(process: psutil.Process) -> bool:
    times = process.cpu_times()
    return bool(times.user > 15)
