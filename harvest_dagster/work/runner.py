"""A runner: candidate and works in one process, from `start` to `stop`.

    your thread        start() wait() stop()       figures() leads()
                          |
    candidate's threads   |  elect and prove: see `election.candidate`
      dispatcher          +--> acquired: begin a work's thread    fenced: end the work at once
      one per hand-over   +--> revoked: have the work drain, wait for it, then hand the shard over
                                   |
    a work's thread, each shard    v   runs the work, which may block on whatever it works with, and
                                       may start threads of its own

What no waiting mends ends the runner: a work that raises anything but a FencedError, or a candidate
that fails. `wait` raises it; another process may fare better.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psycopg
from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception_type, wait_fixed
from tenacity.nap import sleep_using_event

from harvest_dagster.clock import Deadline
from harvest_dagster.election.candidate import Candidate, State
from harvest_dagster.errors import FencedError, HarvestError
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.connect import connect
from harvest_dagster.text import one_line
from harvest_dagster.work.led import Led, Work, added
from harvest_dagster.work.room import Room

_log = logging.getLogger(__name__)
_STOP_SECONDS = 10.0
_AGAIN_SECONDS = 0.5
_DRAIN_SHARE = 0.8
"""Of the time that a hand-over may take: the rest is for the end of what was cut off."""


class Observer:
    """Hears of a runner's terms, in order; each call returns at once, but for `revoked`."""

    def acquired(self, lease: Lease) -> None:
        """A work begins."""

    def refreshed(self, lease: Lease) -> None:
        """It goes on, under a new epoch."""

    def revoked(self, lease: Lease, seconds: float) -> None:
        """It has ended; the shard is handed over when this returns, or after so many seconds."""

    def fenced(self, lease: Lease) -> None:
        """It was cut off: somebody else may lead already."""

    def ended(self) -> None:
        """Nothing more will come."""


class _Running(NamedTuple):
    work: Work
    thread: threading.Thread


class Runner:
    """Stands for election, and does the work that it is elected for."""

    def __init__(self, room: Room, led: Led, observer: Observer | None = None) -> None:
        self.led = led
        self._observer = observer or Observer()
        self._settings = room.candidate(led)
        self._candidate = Candidate(self._settings, self, self._fail)
        self._running: dict[int, _Running] = {}
        self._ended_works: dict[int, dict[str, int]] = {}
        self.stopping, self._ended = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._at_end: Callable[[], None] = lambda: None

    def at_end(self, call: Callable[[], None]) -> None:
        """Have a function called when the runner has ended, whatever ended it; only before that."""
        self._at_end = call

    def start(self) -> None:
        """Begin to stand for election; whether the servers can be reached yet does not matter."""
        self._candidate.start()

    def stop(self, timeout: float | None = None) -> None:
        """Let what is begun settle, hand leadership over, and end."""
        self.stopping.set()
        try:
            self._candidate.stop(timeout)
        finally:
            for work, thread in [*self._running.values()]:
                work.abort()
                thread.join(_STOP_SECONDS)
            self._observer.ended()
            self._ended.set()
            self._at_end()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the runner has ended, and raise what ended it; return whether it has."""
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    @property
    def state(self) -> State:
        """Where in its life the runner is."""
        if self._ended.is_set():
            return State.STOPPED
        if self.stopping.is_set():
            return State.STOPPING
        return self._candidate.state

    @property
    def troubles(self) -> list[str]:
        """What keeps it from leading, or may cost it the lease."""
        return self._candidate.troubles

    @property
    def shards(self) -> list[int]:
        """The shards that this process works on."""
        return sorted(self._running)

    def leads(self, shard: int) -> bool:
        """Return whether this process leads a shard."""
        return self._candidate.leads(shard)

    def lease(self, shard: int) -> Lease | None:
        """Return the lease of a shard, if this process has it."""
        return self._candidate.lease(shard)

    def work(self, shard: int) -> Work | None:
        """Return the work that runs for a shard, if one does."""
        running = self._running.get(shard)
        return running.work if running else None

    def figures(self, shard: int) -> dict[str, int]:
        """Return what this process has done for a shard, over all its terms."""
        work = self.work(shard)
        return added(self.led, self._ended_works.get(shard, {}), work.figures if work else {})

    def acquired(self, lease: Lease) -> None:
        """Begin a work; called by the candidate."""
        self._leave(lease.shard)
        trusted: Callable[[], bool] = lambda: self._candidate.trusted(lease.shard)  # noqa: E731 - named for its type
        work = self.led.work(lease, trusted, self._refreshed)
        thread = threading.Thread(
            target=self._run, args=(work,), name=f"harvest-work-{lease.shard}", daemon=True
        )
        self._running[lease.shard] = _Running(work, thread)
        self._observer.acquired(lease)
        thread.start()

    def revoked(self, lease: Lease) -> None:
        """End the work in good order; called by the candidate, which waits."""
        deadline = Deadline(self._settings.drain_seconds)
        running = self._running.get(lease.shard)
        if running is not None:
            running.work.drain(self._settings.drain_seconds * _DRAIN_SHARE)
            running.thread.join(deadline.left)
            self._leave(lease.shard, running.work)
        _log.info("shard %d: handed over", lease.shard)
        self._observer.revoked(lease, deadline.left)

    def fenced(self, lease: Lease) -> None:
        """End the work at once; called by the candidate."""
        self._leave(lease.shard)
        _log.warning("shard %d: lost", lease.shard)
        self._observer.fenced(lease)

    def _refreshed(self, lease: Lease) -> None:
        _log.info("shard %d: leads on, under epoch %d", lease.shard, lease.epoch)
        self._observer.refreshed(lease)

    def _leave(self, shard: int, only: Work | None = None) -> None:
        """Let go of a shard's work; of `only` this one, if the shard may have a new one by now."""
        running = self._running.get(shard)
        if running is None or only not in {None, running.work}:
            return
        ended = self.figures(shard)
        del self._running[shard]
        if running.thread.is_alive():
            running.work.abort()
        self._ended_works[shard] = ended

    def _run(self, work: Work) -> None:
        try:
            work.run()
        except FencedError as fenced:
            _log.warning("shard %s: the work ends: %s", work.lease.shard, fenced)
            self._hand_back(work.lease)
        except BaseException as failure:  # noqa: BLE001 - wait() raises it
            self._fail(failure)

    def _hand_back(self, lease: Lease) -> None:
        """Resign if the lease is ours all the same: a work of another process has taken it up.

        A run of Dagster's does so that was asked for by a leader that is gone. When it ends, nobody
        would be at work, and this process would lead on.
        """

        def is_over(_tried: RetryCallState) -> bool:
            return not self._leads_without_work(lease.shard)

        if not self._leads_without_work(lease.shard):
            return
        again = Retrying(
            retry=retry_if_exception_type(psycopg.Error),
            wait=wait_fixed(_AGAIN_SECONDS),
            sleep=sleep_using_event(self.stopping),
            stop=is_over,
        )
        with suppress(RetryError):  # somebody else has the lease by now, or it is all over
            again(self._resign, lease)

    def _resign(self, lease: Lease) -> None:
        with connect(self.led.postgres_url, f"{lease.name} resign") as connection:
            leases.ask_to_resign(connection, lease.name, lease.shard)

    def _leads_without_work(self, shard: int) -> bool:
        running = self._running.get(shard)
        mine = running is not None and running.thread is threading.current_thread()
        return mine and self._candidate.leads(shard) and not self.stopping.is_set()

    def _fail(self, failure: BaseException) -> None:
        """End because of what no waiting mends; another candidate may fare better."""
        if self._failure is not None:
            return
        _log.error(
            "%s ends: %s",
            self.led.name,
            one_line(failure),
            exc_info=not isinstance(failure, HarvestError),
        )
        self._failure = failure
        if not self.stopping.is_set():
            threading.Thread(target=self._end, name="harvest-end", daemon=True).start()

    def _end(self) -> None:
        with suppress(Exception):  # what stop() raises is in the log already, and wait() raises it
            self.stop(_STOP_SECONDS)
