"""Waiting for what can be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

DEADLINE_SECONDS = 30.0


def until(true: Callable[[], Any], seconds: float = DEADLINE_SECONDS, what: str = "") -> float:
    """Wait until something holds; tell how long that took."""
    start = time.monotonic()
    while not true():
        assert time.monotonic() - start < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - start
