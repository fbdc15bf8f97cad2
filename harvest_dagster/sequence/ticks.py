"""Clocks: they count 100 ns since 1582, as UUIDs do, with four bits more for neighbours."""

from __future__ import annotations

_UNIX_BEGAN = 122_192_928_000_000_000
_SEQUENCE_BITS = 4
_TICK = 10 << _SEQUENCE_BITS
LARGEST = (1 << 64) - 1


def at(unix_ns: int) -> int:
    """Return the clock of a time, its sequence at zero."""
    return (unix_ns // 100 + _UNIX_BEGAN) << _SEQUENCE_BITS


def unix_ns(clock: int) -> int:
    """Return the time of a clock, to 100 ns."""
    return ((clock >> _SEQUENCE_BITS) - _UNIX_BEGAN) * 100


def span_of(horizon_ns: int) -> int:
    """Return by how much clocks differ that are so far apart in time."""
    return horizon_ns // 100 << _SEQUENCE_BITS


class Clock:
    """A clock that only moves forward: a microsecond with each tick, and to the time it is told."""

    __slots__ = ("value",)

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def tick(self) -> int:
        """Move on, and return where it is."""
        self.value += _TICK
        return self.value

    def update(self, unix_ns: int) -> None:
        """Move on to a time, unless it has passed."""
        self.value = max(self.value, at(unix_ns))
