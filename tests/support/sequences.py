"""Logs of messages in memory, for what sequences them."""

from __future__ import annotations

from collections.abc import Iterator

from harvest_dagster.sequence.sequencer import Sighting


def sighting(log: str, producer: bytes, clock: int, flags: int, offset: int) -> Sighting:
    """Return a message that stands at an offset."""
    return Sighting(log, producer, clock, flags, offset, offset + 1)


class Log:
    """Messages of any number of logs, each at the next offset of its log."""

    def __init__(self) -> None:
        self.messages: list[Sighting] = []
        self._ends: dict[str, int] = {}

    def append(self, log: str, producer: bytes, clock: int, flags: int) -> Sighting:
        """Write a message."""
        offset = self._ends.get(log, 0)
        self._ends[log] = offset + 1
        self.messages.append(sighting(log, producer, clock, flags, offset))
        return self.messages[-1]

    def reread(self, log: str, begin: int, end: int) -> Iterator[Sighting]:
        """Read again what stands from an offset to before another."""
        return (m for m in self.messages if m.log == log and begin <= m.begin < end)

    def since(self, log: str, offset: int) -> list[Sighting]:
        """Return what stands from an offset on."""
        return [m for m in self.messages if m.log == log and m.begin >= offset]
