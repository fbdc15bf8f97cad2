"""A Spark session that all tests of a worker share, and what they look at."""

from __future__ import annotations

import pytest

from tests.support.place import place
from tests.support.running import start_tour
from tests.support.spark import copies, left, rows, small_batches, spark, write

__all__ = ["copies", "left", "place", "rows", "small_batches", "spark", "start_tour", "write"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests that share a session run in one worker, since each worker starts its own."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
