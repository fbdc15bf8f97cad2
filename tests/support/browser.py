"""Real Chromium, for what can only be seen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.ui import Ui

# Read now: no test sees what begins with HARVEST_.
SCREENSHOTS = os.environ.get("HARVEST_SCREENSHOTS")
WIDE = {"width": 1600, "height": 1000}
PATIENCE_MS = 60_000
_UNFINISHED = (
    "text=Loading",
    "text=Checking config >> visible=true",
    '[class*="Skeleton_skeleton"]',
    '[class*="bp5-skeleton"]',
)
"""What Dagster shows where something is still to come."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Chromium; where there is none its tests are left out, but not in CI.

    It ends with its module: while it runs, asyncio's loop does so too, and no other could.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Chromium is not installed")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Page]:
    """A page in a browser that nobody has used yet."""
    context = chromium.new_context(viewport=WIDE)  # type: ignore[arg-type]  # its own TypedDict
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def save_screenshot(page: Page, name: str) -> None:
    """Save what the page shows when all is loaded, if HARVEST_SCREENSHOTS named a folder for it."""
    if SCREENSHOTS:
        for place in _UNFINISHED:
            expect(page.locator(place)).to_have_count(0)
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")


def open_page(browser: Page, ui: Ui, path: str) -> None:
    """Go to a page of the UI."""
    browser.goto(f"{ui.url}{path}")
