"""A clock that stands still until a test moves it."""

from __future__ import annotations


class Clock:
    """A clock to give to what goes by one: when called it tells its time, in seconds."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        """Return the time."""
        return self.time
