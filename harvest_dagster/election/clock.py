"""The clock by which a leader trusts its lease."""

from __future__ import annotations

import time

# Unlike the monotonic clock of Linux, this one goes on while the machine is suspended.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds that never go back."""
    return time.clock_gettime(_CLOCK)
