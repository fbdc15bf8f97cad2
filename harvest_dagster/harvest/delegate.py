"""A tour in a process of its own, on behalf of a candidate in another process.

    the candidate's process              this process
    -----------------------              ------------------------------------------------
    leads by Kafka's word
    renews the lease's row  ---row--->   watch's thread   hears twice a second, and tells,
    asks to drain           ---row--->      |             until when the lease can be trusted
    waits for the end       <---row---      |             and whether to end
                                            v
                                         tour's thread    see `harvest.tour`
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
from contextlib import suppress
from dataclasses import asdict
from uuid import UUID, uuid4

import psycopg

from harvest_dagster.clock import now
from harvest_dagster.errors import FencedError, HarvestStateError
from harvest_dagster.harvest import tours
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import candidate_settings
from harvest_dagster.harvest.recover import Recovery
from harvest_dagster.harvest.tour import Totals, Tour
from harvest_dagster.harvest.tours import Heard
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease, LeaseRow
from harvest_dagster.postgres.refusals import told

_log = logging.getLogger(__name__)
_MARGIN_SECONDS = 1.0
_WATCH_SECONDS = 0.5
_LOOK_SECONDS = 0.05
_PATIENCE = "SELECT set_config('statement_timeout', '3s', false)"


class Delegate:
    """Runs one tour: `begin`, then `wait` until it has ended of itself, or after `drain`."""

    def __init__(self, config: HarvestConfig, shard: int, run: str) -> None:
        self.config, self._shard, self._run = config, shard, run
        self._settings = candidate_settings(config)
        self._id: UUID = uuid4()
        self._until = 0.0
        self._tour: Tour | None = None
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self.reason = "its work is done"

    @property
    def drain_seconds(self) -> float:
        """How long what is in flight may take to settle."""
        return self._settings.drain_seconds

    @property
    def lease(self) -> Lease:
        """The lease, under the epoch that the tour has by now."""
        return self._running().lease

    @property
    def totals(self) -> Totals:
        """What was done so far."""
        return self._running().totals

    @property
    def in_flight(self) -> int:
        """How many records are marked, and not purged yet."""
        return self._running().in_flight

    def begin(self) -> Recovery:
        """Take up the lease, let the last tour end, and recover; tell what was found."""
        with connect(self.config, "begin") as connection:
            self._await_last(connection)
            lease = self._take_up(connection)
        self._tour = Tour(self.config, lease, self._trusted, self._refreshed)
        for target, name in ((self._watch, "watch"), (self._work, "tour")):
            thread = threading.Thread(target=target, name=f"harvest-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        try:
            return self._recovered(self._tour)
        except BaseException:  # a run that is terminated just now: nobody would end it later
            self.close(self.drain_seconds)
            raise

    def wait(self, seconds: float) -> bool:
        """Wait for the tour's end, and raise what ended it; tell whether it has ended."""
        ended = self._ended.wait(seconds)
        if self._failure is not None:
            raise self._failure
        return ended

    def drain(self, reason: str, seconds: float | None = None) -> None:
        """Ask the tour to let what is in flight settle, and to end."""
        if self._tour is not None and not self._ended.is_set():
            self.reason = reason
            self._tour.drain(self._settings.drain_seconds * 0.8 if seconds is None else seconds)

    def close(self, seconds: float) -> None:
        """Drain, for so long; then end at once, without another write."""
        self.drain("it was told to end", seconds)
        if not self._ended.wait(seconds + _LOOK_SECONDS) and self._tour is not None:
            self._tour.abort()
        for thread in self._threads:
            thread.join(seconds)

    def _running(self) -> Tour:
        if self._tour is None:
            raise HarvestStateError("this tour has not begun: call begin() first")
        return self._tour

    def _await_last(self, connection: psycopg.Connection[object]) -> None:
        """Let the tour before this one, if it lives, end in good order."""
        deadline = now() + self._settings.drain_seconds
        while now() < deadline and tours.lives(connection, self.config.name, self._shard):
            tours.ask_to_drain(connection, self.config.name, self._shard)
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
        for row in leases.read(connection, self.config.name):
            if row.shard == self._shard and not row.expired:
                return row
        raise FencedError(
            f"nobody leads {self.config.name}/{self._shard}: a tour needs a leader, which the"
            " sensor makes; turn the sensor on, and it starts the tour"
        )

    def _recovered(self, tour: Tour) -> Recovery:
        while not self._ended.wait(_LOOK_SECONDS):
            if tour.recovery is not None:
                return tour.recovery
        self.wait(0)
        return tour.recovery or Recovery(0, 0, 0, 0)

    def _trusted(self) -> bool:
        return now() < self._until

    @staticmethod
    def _refreshed(lease: Lease) -> None:
        _log.info("refreshed: epoch %d of %s/%d", lease.epoch, lease.name, lease.shard)

    def _work(self) -> None:
        try:
            self._running().run()
        except BaseException as failure:  # noqa: BLE001 - wait() raises it
            self._failure = failure
        finally:
            self._ended.set()

    def _watch(self) -> None:
        """Hear of the lease until the tour has ended; connect anew when the connection breaks."""
        while not self._ended.is_set():
            try:
                with connect(self.config, "watch") as connection:
                    self._hear(connection)
            except psycopg.Error as error:
                _log.warning("the lease could not be read: %s", told(error))
                self._ended.wait(_WATCH_SECONDS)
        with suppress(psycopg.Error), connect(self.config, "watch") as connection:
            self._tell(connection, ended=True)

    def _hear(self, connection: psycopg.Connection[object]) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            asked_at, tour = now(), self._running()
            heard = self._tell(connection, ended=False)
            if heard is None or heard.holder != tour.lease.holder:
                tour.abort()
                return
            self._until = asked_at + heard.expires_in_seconds - _MARGIN_SECONDS
            if heard.drain:
                self.drain("it hands over, to another leader or to its successor")

    def _tell(self, connection: psycopg.Connection[object], *, ended: bool) -> Heard | None:
        tour = self._running()
        figures = {**asdict(tour.totals), "in_flight": tour.in_flight}
        return tours.tell(connection, tour.lease, self._id, figures, tour.held_topics, ended=ended)


def _lease(row: LeaseRow) -> Lease:
    return Lease(row.name, row.shard, row.epoch, row.leader_id, row.holder)
