"""What flows from stage to stage: batches of records, bounded by a window."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Key: TypeAlias = "bytes | str | None"
Row: TypeAlias = (
    "tuple[int, str, Key, bytes | str | None,"
    " list[str] | None, list[bytes | str | None] | None, int | None, int | None]"
)
"""A record: its id, topic, key, value, names and values of its headers, and partition.

And a number for the parts that the outbox had when it was read, if it was read beyond the head.
"""

Headers: TypeAlias = "list[tuple[str, bytes | str | None]]"


@dataclass(slots=True)
class Batch:
    """Records that were marked together, in the order of their ids."""

    number: int
    rows: Sequence[Row]
    size: int
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = len(self.rows)


Sent: TypeAlias = "tuple[Row, Batch]"


class Window:
    """How much may be in flight: the marker waits here until records were purged.

    Any thread may call it. `wait_for_room` is the one place where back-pressure makes a stage wait.
    """

    def __init__(self, records: int, size: int) -> None:
        self._limit, self._size_limit = records, size
        self._changed = threading.Condition()
        self._batches: dict[int, Batch] = {}
        self.records = self.size = 0

    def wait_for_room(self, least: int, seconds: float) -> tuple[int, int]:
        """Wait until there is room for `least` records; return the room, or nothing in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(least), seconds):
                return 0, 0
            return self._limit - self.records, self._size_limit - self.size

    def take(self, batch: Batch) -> None:
        """Put a batch in flight."""
        with self._changed:
            self._batches[batch.number] = batch
            self.records += len(batch.rows)
            self.size += batch.size

    def give_back(self, records: int, size: int, finished: Iterable[int]) -> None:
        """Note that records are in flight no longer, and which batches have no others."""
        with self._changed:
            self.records -= records
            self.size -= size
            for number in finished:
                del self._batches[number]
            self._changed.notify_all()

    def keys(self) -> set[tuple[str, Key]]:
        """The topics and keys of the batches in flight."""
        with self._changed:
            batches = list(self._batches.values())
        return {(row[1], row[2]) for batch in batches for row in batch.rows}

    def _has_room(self, least: int) -> bool:
        return self._limit - self.records >= least and self.size < self._size_limit


def headers_of(names: list[Any], values: list[Any] | None) -> Headers:
    """Pair the headers' names and values; raise a ValueError if no message's can be made of them.

    Whoever stashes by INSERT may leave what `stash` would have refused.
    """
    known = values or []
    fault = _header_fault(names, known)
    if fault is not None:
        raise ValueError(fault)
    return list(zip(names, known, strict=True))


def _header_fault(names: list[Any], values: list[Any]) -> str | None:
    for name in names:
        if not isinstance(name, str):
            return "kafka_header_keys must be an array of texts, without NULL"
    for value in values:
        if isinstance(value, list):
            return "kafka_header_values must be an array of one dimension"
    if len(names) != len(values):
        return f"{len(names)} kafka_header_keys, and {len(values)} kafka_header_values"
    return None


def as_multirange(ids: Iterable[int]) -> str:
    """Write ascending ids as PostgreSQL's multirange, never wider than they are."""
    ranges: list[list[int]] = []
    for found in ids:
        if ranges and found == ranges[-1][1]:
            ranges[-1][1] = found + 1
        else:
            ranges.append([found, found + 1])
    return "{" + ",".join(f"[{low},{high})" for low, high in ranges) + "}"
