"""What a harvest tells the program that embeds it: goharvest's five events, typed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeAlias
from uuid import UUID

_log = logging.getLogger(__name__)

KINDS: dict[str, str] = {
    "tour_started": "a leader began to harvest",
    "tour_ended": "it ended in good order; what it has marked, published, purged",
    "remarked": "records in flight were given up and marked again; how many, and why",
    "ambiguous": "the same, when Kafka no longer knew what was published: doubles are possible",
    "parked": "Kafka refused a record for good, and it was set aside; which, and why",
    "requeued": "an operator put a parked record back; which, and who did",
    "discarded": "an operator let a parked record go; which, and who did",
    "held": "a topic can't be published to, so its records wait; which, and why",
    "released": "topics can be published to again; which",
}
"""What a harvest writes down beside what happens to its lease, and what the detail says of it."""


@dataclass(frozen=True, slots=True)
class LeaderAcquired:
    """Leadership of a shard has come to us."""

    shard: int
    epoch: int
    leader_id: UUID


@dataclass(frozen=True, slots=True)
class LeaderRefreshed:
    """It still leads, under a new epoch and leader id, because records had to be marked again."""

    shard: int
    epoch: int
    leader_id: UUID


@dataclass(frozen=True, slots=True)
class LeaderRevoked:
    """It leads no more; a new leader is elected when the handler returns, or is too slow."""

    shard: int


@dataclass(frozen=True, slots=True)
class LeaderFenced:
    """It leads no more, and somebody else may lead already: stop whatever depends on it at once."""

    shard: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of one shard at one moment, and its rate since the last."""

    shard: int
    published: int
    purged: int
    remarked: int
    parked: int
    in_flight: int
    rate: float
    backlog: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class MeterRead:
    """Figures, now and then."""

    stats: Stats


Event: TypeAlias = "LeaderAcquired | LeaderRefreshed | LeaderRevoked | LeaderFenced | MeterRead"
Handler: TypeAlias = "Callable[[Event], None]"


class HandlerThread:
    """Calls the handler on a thread of its own, so that its delay costs nobody the lease."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._queue: SimpleQueue[tuple[Event, threading.Event] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="harvest-events", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tell(self, event: Event) -> threading.Event:
        """Hand an event over; what is returned is set when the handler has returned."""
        done = threading.Event()
        self._queue.put((event, done))
        return done

    def stop(self, seconds: float) -> None:
        """Let the handler see what was told, and end."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            event, done = item
            try:
                self._handler(event)
            except Exception:  # noqa: BLE001 - whatever a handler raises is its own affair
                _log.exception("the event handler failed at %s", event)
            finally:
                done.set()
