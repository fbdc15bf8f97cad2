"""What the UI shows of a bad night: a leader killed, a topic missing, and both over again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.account import judge, read
from tests.support.browser import open_page, save_screenshot
from tests.support.dagster_dev import dagster_dev
from tests.support.place import Place, set_limit
from tests.support.project import Project
from tests.support.shop import GOOD_TOUR, LARGE, Shop, worker
from tests.support.ui import until
from tests.support.waiting import until as soon

pytestmark = pytest.mark.long

BACKLOG = 200_000
DRAINED_SECONDS = 180.0
CHECK = "/assets/harvest/outbox?view=checks&checkDetail=topics_open"
TALL: Any = {"width": 1600, "height": 1400}


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    """A shop of this test's own."""
    place = Place(project.postgres, dict(project.servers.kafka_config))
    with dagster_dev(project) as running:
        yield Shop(running, place)
    place.drop_topic(place.topic)


def test_a_bad_night(shop: Shop, browser: Page) -> None:
    """The history tells what was remarked, and a check is red for as long as it is so."""
    browser.set_viewport_size(TALL)
    until(lambda: GOOD_TOUR in shop.told(), what="a tour runs")
    _killed_at_work(shop)
    _shown(shop, browser, "/assets/harvest/remarks", ["records", "reason", "history"], "remarks")
    _shown(shop, browser, "/assets/harvest/lease", ["refreshed", "history"], "lease")
    _red_and_green(shop, browser)
    _plots(shop, browser)
    judge(shop.place.stashed, read(shop.place.kafka, *_topics(shop)), "exactly_once")


def test_what_is_red_turns_green(shop: Shop) -> None:
    """So do records that wait for a lock, and one that is too large, when that is over."""
    ui, place = shop.dagster.ui, shop.place
    until(lambda: GOOD_TOUR in shop.told(), what="a tour runs")
    with place.connect() as somebody, somebody.transaction():
        place.put(BACKLOG)
        somebody.execute("LOCK TABLE outbox IN SHARE MODE")
        until(lambda: not _passed(shop, "outbox", "no_stall"), what="no_stall is red")
        until(lambda: not _passed(shop, "outbox", "young"), what="young is red")
    place.drained(DRAINED_SECONDS)
    until(lambda: _passed(shop, "outbox", "no_stall"), what="no_stall is green again")
    until(lambda: _passed(shop, "outbox", "young"), what="young is green again")
    narrow = place.new_topic(max_message_bytes="2000")
    place.stash([place.stashed[0]._replace(topic=narrow, value=b"x" * LARGE)])
    until(lambda: not _passed(shop, "parked", "nothing_parked"), what="nothing_parked is red")
    set_limit(place.admin, narrow, 10 * LARGE)
    run = ui.launch_job(
        "harvest_requeue", {"ops": {"do_harvest_requeue": {"config": {"topic": narrow}}}}
    )
    assert ui.wait_for_run(run) == "SUCCESS"
    until(lambda: _passed(shop, "parked", "nothing_parked"), what="nothing_parked is green again")
    place.drained()
    judge(place.stashed, read(place.kafka, *_topics(shop)), "exactly_once")


def _passed(shop: Shop, asset: str, check: str) -> bool:
    return shop.dagster.ui.checks(f"harvest/{asset}")[check].passed is True


def _killed_at_work(shop: Shop) -> None:
    """Kill the run's process while records are in flight; the next tour marks them again."""
    process = until(lambda: worker(shop), what="the tour's process is seen")
    assert process is not None
    shop.place.put(BACKLOG)
    soon(lambda: shop.place.rows("SELECT 1 FROM harvest.claim LIMIT 1"), what="some in flight")
    process.kill()
    shop.place.drained(DRAINED_SECONDS)
    remark = until(lambda: _remark(shop), what="the UI has the remark") or {}
    assert remark["records"] > 0
    assert remark["from epoch"] < remark["epoch"]
    assert remark["reason"]


def _remark(shop: Shop) -> dict[str, Any] | None:
    found = shop.dagster.ui.observations("harvest/remarks", 1)
    return found[0].metadata if found else None


def _red_and_green(shop: Shop, browser: Page) -> None:
    ui, place = shop.dagster.ui, shop.place
    missing = place.put(1)[0]._replace(topic=f"{place.topic}-missing")
    place.stash([missing])
    until(lambda: ui.checks("harvest/outbox")["topics_open"].passed is False, what="it is red")
    _shown(shop, browser, CHECK, [missing.topic], "checks-red")
    place.new_topic(missing.topic)
    until(lambda: ui.checks("harvest/outbox")["topics_open"].passed, what="it is green again")
    place.drained()
    _shown(shop, browser, CHECK, ["topics_open"], "checks-green")


def _plots(shop: Shop, browser: Page) -> None:
    open_page(browser, shop.dagster.ui, "/assets/harvest/outbox")
    browser.get_by_text("Plots", exact=True).click()
    expect(browser.locator("canvas").first).to_be_visible()
    save_screenshot(browser, "outbox-plots")


def _shown(shop: Shop, browser: Page, path: str, texts: list[str], name: str) -> None:
    open_page(browser, shop.dagster.ui, path)
    for text in texts:
        expect(browser.get_by_text(text).first).to_be_visible()
    save_screenshot(browser, name)


def _topics(shop: Shop) -> list[str]:
    return sorted({message.topic for message in shop.place.stashed})
