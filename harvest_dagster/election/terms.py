"""The terms that a candidate holds, and until when each can be trusted.

Any thread may ask. A term ends exactly once: either it is handed back (`end`), or it is fenced,
and then waits in `unsettled` until the candidate has written that down.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from harvest_dagster.clock import now
from harvest_dagster.ledger.lease import Lease

EXPIRED = "no proof of leadership in time"


@dataclass(slots=True)
class _Term:
    lease: Lease
    until: float
    ending: bool = False


class Terms:
    """The terms of one candidate, by shard."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._now, self._lock = clock, threading.Lock()
        self._terms: dict[int, _Term] = {}
        self._closed: str | None = None
        self.unsettled: deque[tuple[Lease, str]] = deque()

    def begin(self, lease: Lease, until: float) -> bool:
        """Hold a lease that was just acquired, unless no more may be; return whether it is held."""
        with self._lock:
            if self._closed is not None:
                self.unsettled.append((lease, self._closed))
                return False
            self._terms[lease.shard] = _Term(lease, until)
            return True

    def close(self, reason: str) -> None:
        """Hold no term from now on that is not held yet."""
        with self._lock:
            self._closed = reason

    def extend(self, lease: Lease, until: float) -> bool:
        """Trust a term for longer, unless it has run out: then it is over for good."""
        with self._lock:
            term = self._terms.get(lease.shard)
            if term is None or term.until <= self._now():
                return False
            term.lease, term.until = lease, max(until, term.until)
            return True

    def ending(self, shard: int) -> Lease | None:
        """Lead no longer, but go on to be trusted while what is in flight is finished."""
        with self._lock:
            term = self._terms.get(shard)
            if term is None:
                return None
            term.ending = True
            return term.lease

    def end(self, shard: int) -> Lease | None:
        """Hand a term back, if it is still held."""
        with self._lock:
            term = self._terms.pop(shard, None)
            return None if term is None else term.lease

    def fence(self, shard: int, reason: str) -> Lease | None:
        """Give a term up as lost, if it is still held."""
        with self._lock:
            return self._fence(shard, reason)

    def fence_expired(self) -> list[Lease]:
        """Give up the terms whose trust has run out."""
        with self._lock:
            time = self._now()
            expired = [shard for shard, term in self._terms.items() if term.until <= time]
            return [lease for shard in expired if (lease := self._fence(shard, EXPIRED))]

    def seconds_to_expiry(self) -> float | None:
        """Return when the next term runs out, if one is held."""
        with self._lock:
            ends = [term.until for term in self._terms.values()]
        return max(0.0, min(ends) - self._now()) if ends else None

    def shards(self) -> list[int]:
        """Return the shards held."""
        with self._lock:
            return sorted(self._terms)

    def lease(self, shard: int) -> Lease | None:
        """Return the lease under which a shard is held."""
        with self._lock:
            term = self._terms.get(shard)
            return None if term is None else term.lease

    def leads(self, shard: int) -> bool:
        """Return whether new work may begin."""
        with self._lock:
            term = self._terms.get(shard)
            return term is not None and not term.ending and term.until > self._now()

    def trusted(self, shard: int) -> bool:
        """Return whether begun work may be written."""
        with self._lock:
            term = self._terms.get(shard)
            return term is not None and term.until > self._now()

    def _fence(self, shard: int, reason: str) -> Lease | None:
        term = self._terms.pop(shard, None)
        if term is None:
            return None
        self.unsettled.append((term.lease, reason))
        return term.lease
