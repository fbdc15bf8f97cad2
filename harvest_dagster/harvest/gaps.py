"""The gap watch: ids that were missing below the head, and may still appear.

An id is drawn before its transaction commits, so whoever reads by id alone loses the records of
whoever commits late. A missing range is therefore kept, and looked into again and again, until
every transaction that could fill it has ended:

    seen      the range was missing in a scan
    watched   after that scan, all transactions that run in this database were listed. Whoever drew
              one of those ids is among them, even if it has no xid yet, or had ended by then
    waiting   all of them have ended; but one may have been prepared (two-phase commit), so those
              prepared now are listed too
    last      these have ended too: what is not there at the next look will never be
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

Range = tuple[int, int]

_LOWEST = -(2**63)
_NOTHING: Range = (1, 0)
_low = itemgetter(0)
_LOOK_SECONDS = 0.02
_LIST_SECONDS = 0.05
_SHARE_OF_TIME = 10
"""A look that took long is followed by a pause ten times as long, up to half a second."""
_LONGEST_PAUSE = 0.5


@dataclass(slots=True)
class _Group:
    ranges: list[Range]
    running: set[str]
    prepared: set[str] | None = None
    looked: bool = field(default=False)


class GapWatch:
    """The missing ranges of one tour; used by the marker's thread alone."""

    def __init__(self) -> None:
        self._fresh: list[Range] = []
        self._groups: list[_Group] = []
        self._next_list = self._next_look = 0.0

    def see(self, after: int, ids: Sequence[int]) -> None:
        """Note which ids a scan from `after` on did not find."""
        if not ids or ids[-1] - after == len(ids):
            return
        expected = after + 1
        for found in ids:
            if found > expected:
                self._fresh.append((expected, found - 1))
            expected = found + 1

    def see_below(self, first: int) -> None:
        """Note that nothing was found below an id, though it may have been drawn."""
        self._fresh.append((_LOWEST, first - 1))

    def taken(self, ids: Sequence[int]) -> None:
        """Note that these ids were found by other means, so that they are not found twice."""
        self._fresh = _without(self._fresh, ids)
        for group in self._groups:
            group.ranges = _without(group.ranges, ids)

    def wants_list(self) -> bool:
        """Whether the running transactions are to be listed now."""
        return bool(self._fresh or self._groups) and time.monotonic() >= self._next_list

    def listed(self, running: set[str], prepared: set[str]) -> None:
        """Take the list of transactions, made after the scans that were noted before."""
        self._next_list = time.monotonic() + _LIST_SECONDS
        for group in self._groups:
            _advance(group, running, prepared)
        self._groups = [group for group in self._groups if group.ranges]
        if self._fresh:
            self._groups.append(_Group(self._fresh, running))
            self._fresh = []

    def wants_look(self, *, now: bool) -> bool:
        """Whether the missing ranges are to be looked into: `now`, or only as often as is due."""
        return bool(self._fresh or self._groups) and (now or time.monotonic() >= self._next_look)

    def ranges(self) -> tuple[list[int], list[int]]:
        """The lower and upper ends of all missing ranges."""
        ranges = [pair for group in self._groups for pair in group.ranges] + self._fresh
        return [low for low, _ in ranges], [high for _, high in ranges]

    def looked(self, found: Sequence[int], started: float, *, complete: bool) -> None:
        """Take what a look found; `complete` if it saw all that there was."""
        took = time.monotonic() - started
        self._next_look = time.monotonic() + min(
            max(_LOOK_SECONDS, took * _SHARE_OF_TIME), _LONGEST_PAUSE
        )
        self.taken(found)
        for group in self._groups:
            group.looked = complete and group.prepared is not None and not group.prepared
        self._groups = [g for g in self._groups if g.ranges and not g.looked]


def _advance(group: _Group, running: set[str], prepared: set[str]) -> None:
    if group.running:
        group.running &= running
    if not group.running:
        group.prepared = prepared if group.prepared is None else group.prepared & prepared


def _without(ranges: list[Range], found: Sequence[int]) -> list[Range]:
    # They ascend, as the head does that they were seen behind, and may be hundreds of thousands.
    for taken in found if ranges else ():
        place = bisect_right(ranges, taken, key=_low) - 1
        low, high = ranges[place] if place >= 0 else _NOTHING
        if low <= taken <= high:
            rest = [(low, taken - 1), (taken + 1, high)]
            ranges[place : place + 1] = [pair for pair in rest if pair[0] <= pair[1]]
    return ranges
