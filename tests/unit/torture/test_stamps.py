"""The bench's candidates stamp their messages with their own clock, as far as Kafka believes it."""

from __future__ import annotations

import time

import pytest

from tests.torture.stamps import AHEAD_SECONDS, Wall

HOUR = 3600.0


@pytest.mark.parametrize(
    ("moved", "stamped"),
    [(0.0, 0.0), (7.0, 7.0), (-24 * HOUR, -24 * HOUR), (8760 * HOUR, AHEAD_SECONDS)],
)
def test_a_clock_that_was_moved(
    monkeypatch: pytest.MonkeyPatch, moved: float, stamped: float
) -> None:
    """A message has the time of its candidate, but is never so far ahead that Kafka refuses it."""
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + moved)
    assert Wall().milliseconds() / 1000 - true() == pytest.approx(stamped, abs=5)
