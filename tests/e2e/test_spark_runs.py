"""Spark's assets as they are run from the UI: cancelled, and a month with a day that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import open_page, save_screenshot
from tests.support.dagster_dev import DagsterDev, dagster_dev
from tests.support.place import Place
from tests.support.project import Project
from tests.support.shop import Shop
from tests.support.ui import PARTITION, Ui, until

pytestmark = pytest.mark.long

MONTH = [f"2026-10-{day:02}" for day in range(1, 31)]
BAD = MONTH[14]
MONTH_SECONDS = 1_500.0
"""Each day starts a Python and a Spark, of which two go at once; other tests may run beside."""
SALES = ("till_orders", "till_payments", "clean_orders", "daily_sales")
CUSTOMERS = 50
FEW = {"ops": {"tills": {"config": {"orders": 2_000, "customers": CUSTOMERS}}}}
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
    ui, day = shop.dagster.ui, MONTH[0]
    run = ui.launch_assets("till_orders", "till_payments", config=ENDLESS, partition=day)
    until(lambda: any(_busy(each) for each in sparks(shop.dagster)), what="Spark is at work")
    ui.terminate(run)
    assert ui.wait_for_run(run) == "CANCELED"
    until(lambda: not sparks(shop.dagster), 20, "Spark is gone")
    again = ui.launch_assets(*SALES, partition=day)
    assert ui.wait_for_run(again) == "SUCCESS"
    assert stashed(shop).keys() == {day}


def test_a_month_with_a_bad_day(shop: Shop, browser: Page) -> None:
    """A day that fails leaves nothing, the others are whole, and it can be back-filled again.

    The first day is there before the month is back-filled, and is not stashed twice.
    """
    ui, place = shop.dagster.ui, shop.place
    first = ui.launch_assets(*SALES, config=FEW, partition=MONTH[0])
    assert ui.wait_for_run(first) == "SUCCESS"
    place.rows(f"ALTER TABLE daily_sales ADD CONSTRAINT not_now CHECK (day <> '{BAD}')")
    month = ui.launch_backfill(SALES, MONTH, FEW)
    assert ui.wait_for_backfill(month, MONTH_SECONDS) == "COMPLETED_FAILED"
    _failed_alone(ui)
    _whole(shop, {*MONTH} - {BAD})
    _month_shown(browser, ui, month)
    place.rows("ALTER TABLE daily_sales DROP CONSTRAINT not_now")
    assert ui.wait_for_backfill(ui.launch_backfill(SALES, [BAD], FEW)) == "COMPLETED_SUCCESS"
    _whole(shop, {*MONTH})
    _day_shown(browser, shop)


def _failed_alone(ui: Ui) -> None:
    """The bad day's run has failed, as its log tells, and no other."""
    failed = [run for run in ui.runs(limit=2 * len(MONTH)) if run.status == "FAILURE"]
    assert [run.tags[PARTITION] for run in failed] == [BAD]
    assert any("not_now" in (line.error or "") for line in ui.run_log(failed[0].id))


def _whole(shop: Shop, days: set[str]) -> None:
    """Each of these days has a row and a message of each customer, and nothing else is left."""
    place = shop.place
    rows = dict(place.rows("SELECT day::text, count(*) FROM daily_sales GROUP BY 1"))
    assert rows == stashed(shop) == dict.fromkeys(days, CUSTOMERS)
    assert not place.rows("SELECT FROM harvest.staged")
    assert not place.rows("SELECT FROM pg_tables WHERE schemaname = 'harvest_staging'")


def _month_shown(browser: Page, ui: Ui, backfill: str) -> None:
    """The back-fill's page counts the days that were to be done, are at work, done, and failed."""
    open_page(browser, ui, f"/runs/b/{backfill}")
    for asset in SALES:
        row = browser.locator('[class*="rowGrid"]').filter(has_text=asset)
        counts = ["30", "0", "29", "1"] if asset == "daily_sales" else ["30", "0", "30", "0"]
        expect(row.locator("> div")).to_have_text([re.compile(asset), *counts])
    save_screenshot(browser, "spark-backfill")


def _day_shown(browser: Page, shop: Shop) -> None:
    """The asset's newest event tells what was stashed, where it is, and how long that took."""
    query = """SELECT min(id), max(id) FROM outbox
                WHERE convert_from(kafka_value, 'UTF8')::json ->> 'day' = %s"""
    ((first, last),) = shop.place.rows(query, [BAD])
    told: dict[str, str | re.Pattern[str]] = {
        "stashed": str(CUSTOMERS),
        "rows in daily_sales": str(CUSTOMERS),
        "ids": f"{first:,} to {last:,}",
        "seconds": re.compile(r"\d+\.\d+"),
    }
    open_page(browser, shop.dagster.ui, "/assets/daily_sales?view=events")
    expect(browser.get_by_text(f"Partition {BAD} materialized")).to_be_visible()
    for label, value in told.items():
        entry = browser.get_by_role("row").filter(has=browser.get_by_text(label, exact=True))
        expect(entry.get_by_role("cell").nth(1)).to_have_text(value)
    link = browser.get_by_role("link", name="harvest / outbox")
    expect(link).to_have_attribute("href", "/assets/harvest/outbox")
    save_screenshot(browser, "spark-day")


def _busy(process: psutil.Process) -> bool:
    times = process.cpu_times()
    return bool(times.user > 15)
