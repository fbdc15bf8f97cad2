"""Waiting for what can be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from harvest_dagster.clock import Deadline

DEADLINE_SECONDS = 40.0

T = TypeVar("T")


def until(
    true: Callable[[], T],
    seconds: float = DEADLINE_SECONDS,
    what: str = "it holds",
    pause: float = 0.01,
) -> T:
    """Look until something holds, with a pause between looks; return what was seen."""
    deadline = Deadline(seconds)
    while not (seen := true()):
        assert not deadline.over, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
    return seen


def seconds_until(
    true: Callable[[], Any], seconds: float = DEADLINE_SECONDS, what: str = "it holds"
) -> float:
    """Wait until something holds; return how long that took."""
    start = time.monotonic()
    until(true, seconds, what)
    return time.monotonic() - start
