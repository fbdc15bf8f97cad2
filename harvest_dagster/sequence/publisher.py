"""Gives messages their UUIDs, and makes what acknowledges those that were sent as pending."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from harvest_dagster.sequence.ticks import Clock
from harvest_dagster.sequence.uuids import Flags, made


class Publisher:
    """One producer's messages, each with a clock of its own, to any number of destinations."""

    def __init__(self, producer: bytes, now: Callable[[], int] | None = None) -> None:
        """Go by the time in nanoseconds that `now` returns."""
        self.producer = producer
        self._now = now or time.time_ns
        self._clock = Clock()
        self._pending: dict[Hashable, None] = {}

    def committed(self) -> bytes:
        """Return the UUID of a message that counts at once."""
        return self._next(Flags.OUTSIDE)

    def pending(self, destination: Hashable) -> bytes:
        """Return the UUID of a message that counts once it is acknowledged."""
        self._pending[destination] = None
        return self._next(Flags.CONTINUE)

    def acknowledgements(self) -> dict[Hashable, bytes]:
        """Return what acknowledges all that is pending: a UUID for each destination, and reset."""
        acks = {destination: self._tick(Flags.ACK) for destination in self._pending}
        self._pending.clear()
        return acks

    def _next(self, flags: Flags) -> bytes:
        self._clock.update(self._now())
        return self._tick(flags)

    def _tick(self, flags: Flags) -> bytes:
        return made(self.producer, self._clock.tick(), flags)
