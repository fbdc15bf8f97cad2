"""Calls the listener, on threads whose delay can't cost the lease."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from harvest_dagster.election.terms import EXPIRED, Terms
from harvest_dagster.ledger.lease import Lease

_LOGGER = logging.getLogger("harvest_dagster.election")
_LONGEST_NAP_SECONDS = 0.5  # a timer sleeps through a suspended machine; the lease does not
_CLOSE_SECONDS = 5.0


class Listener(Protocol):
    """What a candidate tells of its terms."""

    def acquired(self, lease: Lease) -> None:
        """A term begins: start the work, and return at once."""

    def revoked(self, lease: Lease) -> None:
        """A term is to end: return when what is in flight is finished, within the drain's bound."""

    def fenced(self, lease: Lease) -> None:
        """A term is lost: drop everything, write nothing, and return at once."""


class Dispatcher:
    """One thread calls `acquired` and `fenced`, in order; each `revoked` has a thread of its own.

    The dispatcher also keeps the time: when the trust in a term runs out, it fences the term even
    if the candidate's own thread hangs in a call to Kafka or PostgreSQL.
    """

    def __init__(
        self, listener: Listener, terms: Terms, on_failure: Callable[[BaseException], None]
    ) -> None:
        self._listener, self._terms, self._on_failure = listener, terms, on_failure
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="harvest-dispatcher", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def close(self) -> None:
        """Make the calls that are left, and end."""
        self._queue.put(self._close)
        self._thread.join(_CLOSE_SECONDS)

    def acquired(self, lease: Lease) -> None:
        """Have the listener hear of a term that begins."""
        _LOGGER.info("acquired: epoch %d of %s/%d", *_term(lease))
        self._queue.put(partial(self._tell, self._listener.acquired, lease))

    def lost(self, lease: Lease, reason: str) -> None:
        """Have it hear of a term that is lost."""
        _LOGGER.warning("fenced: epoch %d of %s/%d: %s", *_term(lease), reason)
        self._queue.put(partial(self._tell, self._listener.fenced, lease))

    def revoked(self, lease: Lease) -> threading.Event:
        """Have it hear of a term that is to end; the event is set when it has returned."""
        _LOGGER.info("revoked: epoch %d of %s/%d", *_term(lease))
        done = threading.Event()
        self._queue.put(partial(self._start_revoked, lease, done))
        return done

    def _run(self) -> None:
        while not self._closing:
            task = self._next()
            for lease in self._terms.fence_expired():
                self.lost(lease, EXPIRED)
            if task is not None:
                task()

    def _next(self) -> Callable[[], None] | None:
        left = self._terms.seconds_to_expiry()
        nap = None if left is None else min(left, _LONGEST_NAP_SECONDS)
        try:
            return self._queue.get(timeout=nap)
        except queue.Empty:
            return None

    def _close(self) -> None:
        self._closing = True

    def _start_revoked(self, lease: Lease, done: threading.Event) -> None:
        name = f"harvest-revoked-{lease.shard}"
        threading.Thread(
            target=self._tell_revoked, args=(lease, done), name=name, daemon=True
        ).start()

    def _tell_revoked(self, lease: Lease, done: threading.Event) -> None:
        self._tell(self._listener.revoked, lease)
        done.set()

    def _tell(self, method: Callable[[Lease], None], lease: Lease) -> None:
        try:
            method(lease)
        except BaseException as error:  # noqa: BLE001 - it is raised again by the candidate
            self._on_failure(error)


def _term(lease: Lease) -> tuple[int, str, int]:
    return lease.epoch, lease.name, lease.shard
