"""The bench's candidates stamp their messages with their own clock, as far as Kafka believes it."""

from __future__ import annotations

import time

import pytest

from tests.torture.stamps import AHEAD_SECONDS, stamped

HOUR = 3600.0


@pytest.mark.parametrize(
    ("moved", "believed"),
    [(0.0, 0.0), (7.0, 7.0), (-24 * HOUR, -24 * HOUR), (8760 * HOUR, AHEAD_SECONDS)],
)
def test_a_clock_that_was_moved(moved: float, believed: float) -> None:
    """A message has the time of its candidate, but is never so far ahead that Kafka refuses it."""
    now = time.time()
    assert stamped(now + moved) / 1000 - now == pytest.approx(believed, abs=5)
