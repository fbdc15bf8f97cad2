"""A harvest to embed in any program: candidate and engine in one process.

    harvest = Harvest(HarvestConfig(base_kafka={...}, postgres="postgresql://..."))
    harvest.set_event_handler(print)
    harvest.start()
    harvest.wait()

Threads: the candidate's own (see `election.candidate`) tell, through their dispatcher, when a shard
is acquired, revoked or fenced. For each acquired shard a tour's thread runs (see `harvest.tour`),
which starts three more. The meter's thread reads the backlog now and then, and trims (see
`harvest.trim`). The handler is called on a thread of its own, in order; only when a shard is
revoked is it waited for, as long as the drain may take, before Kafka hands it to somebody else.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from uuid import UUID

import psycopg

from harvest_dagster.election.candidate import Candidate, State
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import FencedError, HarvestError, HarvestStateError
from harvest_dagster.harvest.batch import Key
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import TRUST_MARGIN_SECONDS, HarvestConfig
from harvest_dagster.harvest.events import (
    Dispatcher,
    Event,
    Handler,
    LeaderAcquired,
    LeaderFenced,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
    Stats,
)
from harvest_dagster.harvest.meter import Backlog, read_backlog
from harvest_dagster.harvest.tour import Totals, Tour
from harvest_dagster.harvest.trim import Trimmer
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.outbox.veto import OutboxVeto
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.refusals import told
from harvest_dagster.text import one_line

_log = logging.getLogger(__name__)
_STOP_SECONDS = 10.0
_WATCH_SECONDS = 0.5


class Harvest:
    """Stands for election, and harvests what it is elected for."""

    def __init__(self, config: HarvestConfig) -> None:
        self.config = config
        self._settings = candidate_settings(config)
        self._candidate = Candidate(self._settings, self)
        self._tours: dict[int, tuple[Tour, threading.Thread]] = {}
        self._events: Dispatcher | None = None
        self._handler: Handler = lambda _event: None
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._meter = threading.Thread(target=self._read_meter, name="harvest-meter", daemon=True)
        self.backlog: Backlog | None = None
        self._done: dict[int, Totals] = {}

    def set_event_handler(self, handler: Handler) -> None:
        """Have a function called with each event; only before the start."""
        if self._events is not None:
            raise HarvestStateError("the event handler can only be set before the harvest starts")
        self._handler = handler

    def start(self) -> None:
        """Begin to stand for election; whether the servers can be reached yet does not matter."""
        if self.state is not State.CREATED:
            raise HarvestStateError(f"this harvest is {self.state}: make a new one to start")
        self._events = Dispatcher(self._handler)
        self._events.start()
        self._candidate.start()
        self._meter.start()
        threading.Thread(target=self._watch, name="harvest-watch", daemon=True).start()

    def stop(self, timeout: float | None = None) -> None:
        """Let what is in flight settle, hand leadership over, and end."""
        if self.state is State.CREATED:
            raise HarvestStateError("this harvest has not been started")
        self._stopping.set()
        try:
            self._candidate.stop(timeout)
        finally:
            for tour, thread in list(self._tours.values()):
                tour.abort()
                thread.join(_STOP_SECONDS)
            if self._events is not None:
                self._events.stop(_STOP_SECONDS)
            self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the harvest has ended, and raise what ended it; tell whether it has."""
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    @property
    def state(self) -> State:
        """Where in its life the harvest is."""
        if self._events is None:
            return State.CREATED
        if self._ended.is_set():
            return State.STOPPED
        return State.STOPPING if self._stopping.is_set() else State.RUNNING

    def is_leader(self, shard: int = 0) -> bool:
        """Whether this process leads a shard."""
        return self._candidate.leads(shard)

    def leader_id(self, shard: int = 0) -> UUID | None:
        """The id of this process's leadership of a shard."""
        lease = self._candidate.lease(shard)
        return lease.leader_id if lease else None

    def epoch(self, shard: int = 0) -> int | None:
        """The epoch of this process's leadership of a shard."""
        lease = self._candidate.lease(shard)
        return lease.epoch if lease else None

    @property
    def shards(self) -> list[int]:
        """The shards that this process harvests."""
        return sorted(self._tours)

    @property
    def in_flight_records(self) -> int:
        """How many records are marked, and not purged yet."""
        return sum(tour.in_flight for tour, _ in list(self._tours.values()))

    def in_flight(self, shard: int = 0) -> int:
        """How many records of a shard are marked, and not purged yet."""
        running = self._tours.get(shard)
        return running[0].in_flight if running else 0

    @property
    def in_flight_record_keys(self) -> set[tuple[str, Key]]:
        """The topics and keys of those records."""
        return {key for tour, _ in list(self._tours.values()) for key in tour.in_flight_keys()}

    def totals(self, shard: int = 0) -> Totals:
        """What this process has done for a shard, over all its tours."""
        total = self._done.get(shard, Totals())
        running = self._tours.get(shard)
        return total + running[0].totals if running else total

    def acquired(self, lease: Lease) -> None:
        """Begin a tour; called by the candidate."""
        self._leave(lease.shard)
        tour = Tour(
            self.config,
            lease,
            lambda: self._candidate.trusted(lease.shard),
            self._refreshed,
        )
        thread = threading.Thread(
            target=self._run_tour, args=(tour,), name=f"harvest-tour-{lease.shard}", daemon=True
        )
        self._tours[lease.shard] = (tour, thread)
        self._tell(LeaderAcquired(lease.shard, lease.epoch, lease.leader_id))
        thread.start()

    def revoked(self, lease: Lease) -> None:
        """End the tour in good order; called by the candidate, which waits."""
        deadline = time.monotonic() + self._settings.drain_seconds
        running = self._tours.get(lease.shard)
        if running is not None:
            running[0].drain(self._settings.drain_seconds * 0.8)
            running[1].join(self._settings.drain_seconds)
            self._leave(lease.shard, running[0])
        told = self._tell(LeaderRevoked(lease.shard))
        told.wait(max(0.0, deadline - time.monotonic()))

    def fenced(self, lease: Lease) -> None:
        """End the tour at once; called by the candidate."""
        self._leave(lease.shard)
        self._tell(LeaderFenced(lease.shard))

    def _leave(self, shard: int, only: Tour | None = None) -> None:
        """Let go of a shard's tour; of `only` this one, if the shard may have a new one by now."""
        running = self._tours.get(shard)
        if running is None or only not in {None, running[0]}:
            return
        del self._tours[shard]
        tour, thread = running
        if thread.is_alive():
            tour.abort()
        self._done[shard] = self._done.get(shard, Totals()) + tour.totals

    def _run_tour(self, tour: Tour) -> None:
        try:
            tour.run()
        except FencedError as fenced:
            _log.warning("shard %s: the tour ends: %s", tour.lease.shard, fenced)
            self._hand_back(tour.lease)
        except BaseException as failure:  # noqa: BLE001 - wait() raises it
            self._fail(failure)

    def _hand_back(self, lease: Lease) -> None:
        """Resign if the lease is ours all the same: a tour of another process has taken it up.

        A run of Dagster's does so that was asked for by a leader that is gone. When it ends, nobody
        would be at work, and this process would lead on.
        """
        while self._leads_without_tour(lease.shard):
            with suppress(psycopg.Error), connect(self.config, "resign") as connection:
                leases.ask_to_resign(connection, lease.name, lease.shard)
                return
            self._stopping.wait(_WATCH_SECONDS)

    def _leads_without_tour(self, shard: int) -> bool:
        running = self._tours.get(shard)
        mine = running is not None and running[1] is threading.current_thread()
        return mine and self._candidate.leads(shard) and not self._stopping.is_set()

    def _fail(self, failure: BaseException) -> None:
        """End because of what no waiting mends; another candidate may fare better."""
        _log.error(
            "the harvest ends: %s",
            one_line(failure),
            exc_info=not isinstance(failure, HarvestError),
        )
        self._failure = failure
        threading.Thread(target=self._end, name="harvest-end", daemon=True).start()

    def _end(self) -> None:
        with suppress(Exception):  # what stop() raises is in the log already, and wait() raises it
            self.stop(_STOP_SECONDS)

    def _watch(self) -> None:
        """End when the candidate has failed, which otherwise nobody would be told."""
        while not self._stopping.wait(_WATCH_SECONDS):
            if self._candidate.failure is not None:
                self._fail(self._candidate.failure)
                return

    def _refreshed(self, lease: Lease) -> None:
        self._tell(LeaderRefreshed(lease.shard, lease.epoch, lease.leader_id))

    def _tell(self, event: Event) -> threading.Event:
        if self._events is None:
            raise HarvestStateError("this harvest has not been started")
        return self._events.tell(event)

    def _read_meter(self) -> None:
        """Read the backlog and tell the figures, and trim, for as long as the harvest runs."""
        before: dict[int, tuple[float, int]] = {}
        table, trimmer = TableName.parse(self.config.outbox), Trimmer(self.config)
        while not self._stopping.wait(self.config.limits.min_metrics_interval or 1.0):
            if not self._tours:
                continue
            try:
                with connect(self.config, "meter") as connection:
                    self.backlog = read_backlog(connection, table)
            except psycopg.Error as error:
                _log.warning("the backlog could not be read: %s", told(error))
                continue
            for shard in self.shards:
                self._tell(MeterRead(self._stats(shard, self.backlog, before)))
            trimmer.trim()

    def _stats(self, shard: int, backlog: Backlog, before: dict[int, tuple[float, int]]) -> Stats:
        totals, now = self.totals(shard), time.monotonic()
        then, published = before.get(shard, (now, totals.published))
        before[shard] = (now, totals.published)
        rate = (totals.published - published) / (now - then) if now > then else 0.0
        running = self._tours.get(shard)
        return Stats(
            shard,
            totals.published,
            totals.purged,
            totals.remarked,
            totals.parked,
            running[0].in_flight if running else 0,
            rate,
            backlog.records,
            backlog.oldest_seconds,
        )


def candidate_settings(config: HarvestConfig) -> CandidateSettings:
    """What the election needs of a harvest's configuration."""
    limits = config.limits
    session = limits.session_seconds
    return CandidateSettings(
        name=config.name,
        label=config.label,
        veto=OutboxVeto(config.name, TableName.parse(config.outbox).sql, config.shards),
        leader_topic=config.leader_topic,
        leader_group=config.leader_group,
        postgres_url=connection_string(config.postgres.get_secret_value()),
        kafka=config.base_kafka,
        shards=config.shards,
        session_timeout_ms=int(session * 1000),
        heartbeat_seconds=min(1.0, session / 6),
        margin_seconds=TRUST_MARGIN_SECONDS,
        drain_seconds=limits.queue_timeout,
    )
