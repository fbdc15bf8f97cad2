"""What a session may send when, so that each partition has a prefix of what it sends. Pure.

A reader takes a clock that is not larger than one it has seen for a double. So no record may be
there before another of a smaller clock. Kafka keeps the order of an idempotent producer, but for
the first batch that a broker sees of one: it takes *any* first sequence number. Was the first batch
refused, the next ones, in flight by then, are taken, and the refused records are behind them. So

    new      the session's first record in a partition goes out alone
    open     once it is acknowledged, the others go, in the order of their clocks
    silent   the broker may have forgotten a producer that it has not heard of for long: as new

Nothing goes out behind a record that was given up: its lane is closed for the rest of the session.
`one_by_one` has no lane open: it is known of each record whether it was refused before another of
its partition goes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

SILENCE_SECONDS = 3600.0
"""Brokers keep a producer for a day, by default; nobody sets `producer.id.expiration.ms` to less
than an hour but to try that out."""
Lane = tuple[str, int]
_Record = TypeVar("_Record")


class _State(Generic[_Record]):
    __slots__ = ("closed", "flying", "heard_at", "waiting")

    def __init__(self) -> None:
        self.flying = 0
        self.closed = False
        self.heard_at: float | None = None
        self.waiting: deque[_Record] = deque()


class PartitionLanes(Generic[_Record]):
    """The partitions of one session; used by one thread."""

    def __init__(
        self,
        now: Callable[[], float],
        silence_seconds: float = SILENCE_SECONDS,
        *,
        one_by_one: bool = False,
    ) -> None:
        self._now, self._silence, self._one_by_one = now, silence_seconds, one_by_one
        self._lanes: dict[Lane, _State[_Record]] = {}
        self.flying = 0
        """How many records are sent, and not acknowledged yet."""

    def enter(self, lane: Lane, record: _Record) -> bool:
        """Return whether a record goes out now; if not, it waits for an acknowledgement."""
        state = self._lanes.get(lane)
        if state is None:
            state = self._lanes[lane] = _State()
        if state.closed or state.waiting or not self._may_send(state):
            state.waiting.append(record)
            return False
        state.flying += 1
        self.flying += 1
        return True

    def acknowledged(self, lane: Lane) -> list[_Record]:
        """Return the records that go out now that one of the lane is acknowledged."""
        state = self._lanes[lane]
        state.flying -= 1
        self.flying -= 1
        state.heard_at = self._now()
        if state.closed or not state.waiting:
            return []
        count = 1 if self._one_by_one else len(state.waiting)
        released = [state.waiting.popleft() for _ in range(count)]
        state.flying += count
        self.flying += count
        return released

    def is_closed(self, lane: Lane) -> bool:
        """Return whether nothing may go out there any more, not even what was released."""
        return self._lanes[lane].closed

    def close(self, lane: Lane) -> None:
        """Have nothing more go out there, since a record was given up."""
        state = self._lanes[lane]
        state.flying -= 1
        self.flying -= 1
        state.closed = True

    def _may_send(self, state: _State[_Record]) -> bool:
        if not state.flying:
            return True
        if self._one_by_one:
            return False
        return state.heard_at is not None and self._now() - state.heard_at < self._silence
