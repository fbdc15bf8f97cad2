"""The pages that an operator looks at, in a real browser; with HARVEST_SCREENSHOTS, as pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import open_page, save_screenshot
from tests.support.dagster_dev import DagsterDev
from tests.support.place import Place
from tests.support.shop import GOOD_TOUR, LARGE, SENSOR
from tests.support.ui import until

LOCATION = "/locations/__repository__@definitions.py"
TOUR = "harvest_tour"


@pytest.fixture(scope="module")
def at_work(dagster_ui: DagsterDev) -> Iterator[DagsterDev]:
    """A Dagster whose tour has published, and has parked a record that was too large."""
    project = dagster_ui.project
    place = Place(project.postgres, dict(project.servers.kafka_config))
    good = place.put(300)
    narrow = place.new_topic(max_message_bytes="2000")
    place.stash([good[0]._replace(topic=narrow, value=b"x" * LARGE)])
    ui = dagster_ui.ui
    until(lambda: place.rows("SELECT id FROM harvest.parked"), what="a record is parked")
    until(lambda: ui.checks("harvest/parked")["nothing_parked"].passed is False, what="it is red")
    until(lambda: ui.observations("harvest/outbox"), what="figures are there")
    yield dagster_ui
    for topic in (place.topic, narrow):
        place.drop_topic(topic)


def test_how_the_assets_are_described(at_work: DagsterDev) -> None:
    """Each asset of the harvest has its group, kinds, an owner and a description."""
    found = {key: one for key, one in at_work.ui.assets().items() if one.group == "harvest"}
    topics = {f"kafka/{name}" for name in ("orders", "daily-sales", "large-orders", "payments")}
    own = {f"harvest/{name}" for name in ("outbox", "lease", "remarks", "parked")}
    assert found.keys() == own | topics
    assert all(one.owners == ("harvest",) and one.description for one in found.values())
    assert found["harvest/outbox"].kinds == ("outbox", "postgres")
    assert found["harvest/lease"].kinds == ("kafka", "postgres")
    assert {found[key].kinds for key in topics} == {("kafka",)}
    assert {found[key].upstream for key in topics} == {("harvest/outbox",)}


def test_what_the_lease_tells(at_work: DagsterDev) -> None:
    """Its last event has the epoch, the leader's id and the holder that the lease's row has."""
    project, ui = at_work.project, at_work.ui
    place = Place(project.postgres, dict(project.servers.kafka_config))
    columns = "epoch, leader_id::text, holder"

    def told() -> bool:
        newest = ui.observations("harvest/lease", 1)[0].metadata
        lease = place.rows(f"SELECT {columns} FROM harvest.lease")[0]
        return bool((newest["epoch"], newest["leader id"], newest["holder"]) == lease)

    until(told, what="the asset tells the lease as it is")


def test_what_the_topics_have(dagster_ui: DagsterDev, at_work: DagsterDev) -> None:
    """A topic's asset counts what was published to it."""
    ui = dagster_ui.ui
    run = ui.launch_assets("orders", config={"ops": {"orders": {"config": {"count": 5}}}})
    assert ui.wait_for_run(run) == "SUCCESS"
    assert at_work is dagster_ui

    def counted() -> bool:
        found = ui.observations("kafka/orders", 1)
        return bool(found) and found[0].metadata["end offsets"] >= 5

    until(counted, what="the topic is counted")


def test_what_the_outbox_tells(at_work: DagsterDev) -> None:
    """Its figures are all there, and add up."""

    def newest() -> dict[str, Any]:
        return at_work.ui.observations("harvest/outbox", 1)[0].metadata

    until(lambda: newest()["published"] >= 299, what="what was published is told")
    found = newest()
    names = {"backlog", "oldest seconds", "in flight", "published", "rate", "remarked", "parked"}
    assert [*found][:2] == ["led by", "tour"]
    assert {*found} - {"led by", "tour", "backlog by topic"} == names
    assert found["parked"] == 1


def test_the_lineage(at_work: DagsterDev, browser: Page) -> None:
    """The group's graph has the outbox, the lease, and the topics."""
    size = browser.viewport_size
    browser.set_viewport_size({"width": 3000, "height": 1800})  # what is not in it is not drawn
    open_page(browser, at_work.ui, f"{LOCATION}/asset-groups/harvest/lineage")
    for name in ("outbox", "lease", "remarks", "parked"):
        expect(browser.get_by_text(name, exact=True).first).to_be_visible()
    save_screenshot(browser, "lineage")
    if size is not None:
        browser.set_viewport_size(size)


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/assets/harvest/outbox", ["backlog", "in flight", "published", "rate"]),
        ("/assets/harvest/outbox?view=checks", ["no_stall", "topics_open", "table_healthy"]),
        ("/assets/harvest/lease?view=overview", ["epoch", "leader id", "holder", "history"]),
        ("/assets/harvest/parked?view=checks", ["nothing_parked"]),
    ],
)
def test_a_page(at_work: DagsterDev, browser: Page, path: str, texts: list[str]) -> None:
    """It shows what it is for."""
    open_page(browser, at_work.ui, path)
    for text in texts:
        expect(browser.get_by_text(text).first).to_be_visible()
    save_screenshot(browser, path.rsplit("/", maxsplit=1)[-1].replace("?view=", "-"))


def test_the_sensor(at_work: DagsterDev, browser: Page) -> None:
    """A tick's tooltip is the line of what it saw."""
    until(lambda: GOOD_TOUR in str(at_work.ui.ticks(SENSOR, 1)[0].said), what="a tour runs")
    open_page(browser, at_work.ui, f"{LOCATION}/sensors/{SENSOR}")
    until(lambda: tooltip_of(browser, "0 runs requested", GOOD_TOUR), what="the tooltip is there")
    save_screenshot(browser, SENSOR)


def tooltip_of(browser: Page, text: str, said: str) -> bool:
    """Point at a text, and tell whether its tooltip shows; the page may draw it anew meanwhile."""
    browser.mouse.move(0, 0)
    browser.get_by_text(text).first.hover()
    with suppress(AssertionError):
        expect(browser.get_by_text(said).last).to_be_visible(timeout=3_000)
        return True
    return False


def test_the_run_of_a_tour(at_work: DagsterDev, browser: Page) -> None:
    """It has three steps, and its log tells of the lease and of what was parked."""
    ui = at_work.ui
    run = until(lambda: [r for r in ui.runs(TOUR) if r.status == "STARTED"], what="a tour runs")[0]
    open_page(browser, ui, f"/runs/{run.id}")
    for step in ("mark", "publish", "purge"):
        expect(browser.get_by_text(step, exact=True).first).to_be_visible()
    save_screenshot(browser, "tour")
    said = [line.message for line in ui.run_log(run.id)]
    assert any("under epoch" in line for line in said)
    assert any(line.startswith("parked: ") for line in said)


def test_an_operators_job_from_the_launchpad(at_work: DagsterDev, browser: Page) -> None:
    """An empty choice is refused, by a run that says what to give."""
    ui = at_work.ui
    open_page(browser, ui, f"{LOCATION}/jobs/harvest_requeue/playground")
    expect(browser.get_by_text("ops:").first).to_be_visible()
    launch = browser.get_by_role("button", name="Launch run").last
    expect(launch).to_be_enabled()
    save_screenshot(browser, "launchpad")
    launch.click()
    run = until(lambda: ui.runs("harvest_requeue"), what="the run is launched")[0]
    assert ui.wait_for_run(run.id) == "FAILURE"
    errors = [line.error for line in ui.run_log(run.id) if line.error]
    assert any("ids" in error for error in errors), errors
