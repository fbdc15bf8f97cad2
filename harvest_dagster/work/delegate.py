"""A work in a process of its own, on behalf of a candidate in another process: a tour.

    the candidate's process              this process
    -----------------------              ------------------------------------------------
    leads
    renews the lease's row  ---row--->   watch's thread   hears twice a second, and says,
    asks to drain           ---row--->      |             until when the lease can be trusted
    waits for the end       <---row---      |             and whether to end
                                            v
                                         work's thread    see the room whose work it is
                                         your thread      begin() ... drain() wait()

The tour takes up the lease with an epoch of its own: whatever a tour before it, that was silent and
not dead, still tries to write is refused from then on. Its watch trusts the lease's row until
shortly before it expires, by this machine's clock from before it asked; when PostgreSQL does not
answer, or the candidate is gone, trust runs out and the next write ends the tour.

The watch's thread alone uses the watch's connection, and may block on PostgreSQL. `drain` and the
figures may be called from any thread, and do not block.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID, uuid4

import psycopg

from harvest_dagster.clock import Deadline, now
from harvest_dagster.errors import FencedError, HarvestStateError
from harvest_dagster.ledger import candidates
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease, LeaseRow
from harvest_dagster.postgres.connect import PATIENT, Patience, connect
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.work import tours
from harvest_dagster.work.led import Led, Work, done
from harvest_dagster.work.tours import Word

_log = logging.getLogger(__name__)
_MARGIN_SECONDS = 1.0
_WATCH_SECONDS = 0.5
_LOOK_SECONDS = 0.05
_DRAIN_SHARE = 0.8
_PATIENCE = Patience(statement=3)


class Delegate:
    """Runs one tour: `begin`, then `wait` until it has ended of itself, or after `drain`."""

    def __init__(self, led: Led, shard: int, run: str) -> None:
        self.led, self._shard, self._run = led, shard, run
        self.drain_seconds = led.candidate.drain_seconds
        self._id: UUID = uuid4()
        self._until = 0.0
        self._made: Work | None = None
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self.reason = "its work is done"

    @property
    def work(self) -> Work:
        """The work, with its lease and figures; only after `begin`."""
        if self._made is None:
            raise HarvestStateError("this tour has not begun: call begin() first")
        return self._made

    def begin(self) -> Mapping[str, int]:
        """Take up the lease, and let the last tour end; return what the work found."""
        with self._connect("begin", PATIENT) as connection:
            self._await_last(connection)
            lease = self._take_up(connection)
        self._made = self.led.work(lease, self._trusted, _refreshed)
        for target, name in ((self._watch, "watch"), (self._work, "work")):
            thread = threading.Thread(target=target, name=f"harvest-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        try:
            return self._found()
        except BaseException:  # a run that is terminated just now: nobody would end it later
            self.close(self.drain_seconds)
            raise

    def wait(self, seconds: float) -> bool:
        """Wait for the tour's end, and raise what ended it; return whether it has ended."""
        ended = self._ended.wait(seconds)
        if self._failure is not None:
            raise self._failure
        return ended

    def drain(self, reason: str, seconds: float | None = None) -> None:
        """Ask the work to let what is begun settle, and to end."""
        if self._made is not None and not self._ended.is_set():
            self.reason = reason
            self._made.drain(self.drain_seconds * _DRAIN_SHARE if seconds is None else seconds)

    def close(self, seconds: float) -> None:
        """Drain, for so long; then end at once, without another write."""
        self.drain("it was told to end", seconds)
        if not self._ended.wait(seconds + _LOOK_SECONDS) and self._made is not None:
            self._made.abort()
        for thread in self._threads:
            thread.join(seconds)

    def _connect(self, what: str, patience: Patience) -> psycopg.Connection[object]:
        return connect(self.led.postgres_url, f"{self.led.name} {what}", patience)

    def _await_last(self, connection: psycopg.Connection[object]) -> None:
        """Let the tour before this one, if it lives, end in good order."""
        deadline = Deadline(self.drain_seconds)
        while not deadline.over and tours.lives(connection, self.led.name, self._shard):
            tours.ask_to_drain(connection, self.led.name, self._shard)
            self._ended.wait(_LOOK_SECONDS)

    def _take_up(self, connection: psycopg.Connection[object]) -> Lease:
        asked_at = now()
        held = self._held(connection)
        lease = leases.refresh(connection, _lease(held), f"a tour begins: {self._run}")
        if not tours.begin(connection, lease, self._id, self._run):
            raise FencedError(f"epoch {lease.epoch} of {lease.name}/{lease.shard} is over already")
        self._until = asked_at + held.expires_in_seconds - _MARGIN_SECONDS
        return lease

    def _held(self, connection: psycopg.Connection[object]) -> LeaseRow:
        for row in leases.read(connection, self.led.name):
            if row.shard == self._shard and not row.expired:
                return row
        raise FencedError(
            f"nobody leads {self.led.name}/{self._shard}: a tour needs a leader, which the"
            " sensor makes; turn the sensor on, and it starts the tour"
        )

    def _found(self) -> Mapping[str, int]:
        while not self._ended.wait(_LOOK_SECONDS):
            if (found := self.work.found) is not None:
                return found
        self.wait(0)
        return self.work.found or {}

    def _trusted(self) -> bool:
        return now() < self._until

    def _work(self) -> None:
        try:
            self.work.run()
        except FencedError as fenced:
            self._failure = FencedError(f"{fenced}{self._trouble()}")
        except BaseException as failure:  # noqa: BLE001 - wait() raises it
            self._failure = failure
        finally:
            self._ended.set()

    def _trouble(self) -> str:
        """Return what troubles the candidate that this tour works for, to say why it was fenced."""
        with suppress(psycopg.Error), self._connect("trouble", _PATIENCE) as connection:
            for row in candidates.read(connection, self.led.name):
                if row.holder == self.work.lease.holder and row.troubles:
                    return f"; who leads it says: {'; '.join(row.troubles)}"
        return ""

    def _watch(self) -> None:
        """Hear of the lease until the tour has ended; connect anew when the connection breaks."""
        while not self._ended.is_set():
            try:
                with self._connect("watch", _PATIENCE) as connection:
                    self._hear(connection)
            except psycopg.Error as error:
                _log.warning("the lease could not be read: %s", explained(error))
                self._ended.wait(_WATCH_SECONDS)
        with suppress(psycopg.Error), self._connect("watch", _PATIENCE) as connection:
            self._tell(connection, ended=True)

    def _hear(self, connection: psycopg.Connection[object]) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            asked_at = now()
            word = self._tell(connection, ended=False)
            if word is None or word.holder != self.work.lease.holder or word.expired:
                self.work.abort()
                return
            self._until = asked_at + word.expires_in_seconds - _MARGIN_SECONDS
            if word.drain:
                self.drain("it hands over, to another leader or to its successor")

    def _tell(self, connection: psycopg.Connection[object], *, ended: bool) -> Word | None:
        work, figures = self.work, self.work.figures
        count = done(self.led, figures)
        return tours.tell(
            connection, work.lease, self._id, figures, work.held, done=count, ended=ended
        )


def _refreshed(lease: Lease) -> None:
    _log.info("refreshed: epoch %d of %s/%d", lease.epoch, lease.name, lease.shard)


def _lease(row: LeaseRow) -> Lease:
    return Lease(row.name, row.shard, row.epoch, row.leader_id, row.holder)
