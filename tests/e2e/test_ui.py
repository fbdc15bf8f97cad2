"""The code location in a real `dagster dev`: by GraphQL, and in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.answers import AssetEvent
from tests.support.browser import save_screenshot
from tests.support.dagster_dev import DagsterDev

COUNT = 12
CONFIG = {"ops": {"orders": {"config": {"count": COUNT, "customers": 3}}}}


@pytest.fixture
def materialized(dagster_ui: DagsterDev) -> AssetEvent:
    """A materialization of `orders`, made just now."""
    ui = dagster_ui.ui
    run = ui.launch_assets("orders", config=CONFIG)
    assert ui.wait_for_run(run) == "SUCCESS", ui.run_log(run)
    return next(event for event in ui.materializations("orders") if event.run_id == run)


def test_the_location_loads_without_errors(dagster_ui: DagsterDev) -> None:
    """Nothing of the code location is refused, and its assets are there."""
    assert dagster_ui.ui.load_errors() == {}
    orders = dagster_ui.ui.assets()["orders"]
    assert (orders.group, orders.kinds, orders.owners) == ("shop", ("postgres",), ("shop",))


def test_the_location_is_loaded_anew(dagster_ui: DagsterDev) -> None:
    """The button `Reload` works."""
    dagster_ui.ui.reload()
    assert dagster_ui.ui.load_errors() == {}


def test_a_materialization_tells_what_was_stashed(materialized: AssetEvent) -> None:
    """Rows and messages are counted in the metadata."""
    assert materialized.metadata == {"dagster/row_count": COUNT, "stashed": COUNT}


def test_the_catalog_lists_the_asset(dagster_ui: DagsterDev, browser: Page) -> None:
    """The page of all assets shows it in its group."""
    browser.goto(f"{dagster_ui.ui.url}/assets")
    expect(browser.get_by_role("link", name="orders").first).to_be_visible()
    save_screenshot(browser, "catalog")


def test_the_page_of_the_asset_shows_its_metadata(
    dagster_ui: DagsterDev, materialized: AssetEvent, browser: Page
) -> None:
    """The newest materialization is there with its figures."""
    browser.goto(f"{dagster_ui.ui.url}/assets/orders?view=events")
    expect(browser.get_by_text("stashed").first).to_be_visible()
    expect(browser.get_by_text(materialized.run_id[:8]).first).to_be_visible()
    save_screenshot(browser, "orders")
