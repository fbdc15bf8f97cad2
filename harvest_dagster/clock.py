"""Time as leases and waits count it: it never goes back, and goes on in a suspended machine."""

from __future__ import annotations

import time

# Unlike the monotonic clock of Linux, this one goes on while the machine is suspended.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds that never go back."""
    return time.clock_gettime(_CLOCK)


class Deadline:
    """A moment so many seconds from now, until which something is waited for."""

    def __init__(self, seconds: float) -> None:
        self._at = now() + seconds

    @property
    def left(self) -> float:
        """Return how many seconds are left, and 0 when it is over."""
        return max(0.0, self._at - now())

    @property
    def over(self) -> bool:
        """Return whether the moment has come."""
        return now() >= self._at

    def shorten(self, seconds: float) -> None:
        """Bring it nearer, to so many seconds from now; never put it off."""
        self._at = min(self._at, now() + seconds)
