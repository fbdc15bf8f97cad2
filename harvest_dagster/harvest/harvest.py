"""A harvest to embed in any program: candidate and engine in one process.

    harvest = Harvest(HarvestConfig(base_kafka={...}, postgres="postgresql://..."))
    harvest.set_event_handler(print)
    harvest.start()
    harvest.wait()

Threads: the runner's (see `work.runner`), whose works are tours (see `harvest.tour`), which start
their stages. The meter's thread reads the backlog now and then, and trims (see `harvest.trim`).
The handler is called on a thread of its own, in order; only when a shard is revoked is it waited
for, as long as the drain may take, before Kafka hands it to somebody else.
"""

from __future__ import annotations

import logging
import threading
import time
from uuid import UUID

import psycopg

from harvest_dagster.election.candidate import State
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.batch import Key
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.leader_events import (
    Event,
    Handler,
    HandlerThread,
    LeaderAcquired,
    LeaderFenced,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
    Stats,
)
from harvest_dagster.harvest.meter import Backlog, read_backlog
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.tour import Totals, Tour
from harvest_dagster.harvest.trim import Trimmer
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.work.runner import Observer, Runner

_log = logging.getLogger(__name__)
_STOP_SECONDS = 10.0


class _Observer(Observer):
    """Makes goharvest's events of what the runner tells."""

    def __init__(self) -> None:
        self.handler: Handler = lambda _event: None
        self._calls: HandlerThread | None = None

    def start(self) -> None:
        """Begin to call the handler."""
        self._calls = HandlerThread(self.handler)
        self._calls.start()

    def tell(self, event: Event) -> threading.Event:
        """Have the handler called; what is returned is set when it has returned."""
        if self._calls is None:
            raise HarvestStateError("this harvest has not been started")
        return self._calls.tell(event)

    def acquired(self, lease: Lease) -> None:
        """Have the handler hear that a tour begins."""
        self.tell(LeaderAcquired(lease.shard, lease.epoch, lease.leader_id))

    def refreshed(self, lease: Lease) -> None:
        """Have it hear that the tour goes on under a new epoch."""
        self.tell(LeaderRefreshed(lease.shard, lease.epoch, lease.leader_id))

    def revoked(self, lease: Lease, seconds: float) -> None:
        """Have it hear that the tour has ended, and wait for it."""
        self.tell(LeaderRevoked(lease.shard)).wait(seconds)

    def fenced(self, lease: Lease) -> None:
        """Have it hear that the tour was cut off."""
        self.tell(LeaderFenced(lease.shard))

    def ended(self) -> None:
        """Let the handler see what was told."""
        if self._calls is not None:
            self._calls.stop(_STOP_SECONDS)


class Harvest:
    """Stands for election, and harvests what it is elected for."""

    def __init__(self, config: HarvestConfig) -> None:
        self.config = config
        self._observer = _Observer()
        self.runner = Runner(ROOM, Harvesting(config), self._observer)
        self._meter = threading.Thread(target=self._read_meter, name="harvest-meter", daemon=True)
        self.backlog: Backlog | None = None

    def set_event_handler(self, handler: Handler) -> None:
        """Have a function called with each event; only before the start."""
        if self.state is not State.CREATED:
            raise HarvestStateError("the event handler can only be set before the harvest starts")
        self._observer.handler = handler

    def start(self) -> None:
        """Begin to stand for election; whether the servers can be reached yet does not matter."""
        if self.state is not State.CREATED:
            raise HarvestStateError(f"this harvest is {self.state}: make a new one to start")
        self._observer.start()
        self.runner.start()
        self._meter.start()

    def stop(self, timeout: float | None = None) -> None:
        """Let what is in flight settle, hand leadership over, and end."""
        if self.state is State.CREATED:
            raise HarvestStateError("this harvest has not been started")
        self.runner.stop(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the harvest has ended, and raise what ended it; return whether it has."""
        return self.runner.wait(timeout)

    @property
    def state(self) -> State:
        """Where in its life the harvest is."""
        return self.runner.state

    def is_leader(self, shard: int = 0) -> bool:
        """Whether this process leads a shard."""
        return self.runner.leads(shard)

    def leader_id(self, shard: int = 0) -> UUID | None:
        """The id of this process's leadership of a shard."""
        lease = self.runner.lease(shard)
        return lease.leader_id if lease else None

    def epoch(self, shard: int = 0) -> int | None:
        """The epoch of this process's leadership of a shard."""
        lease = self.runner.lease(shard)
        return lease.epoch if lease else None

    @property
    def shards(self) -> list[int]:
        """The shards that this process harvests."""
        return self.runner.shards

    @property
    def in_flight_records(self) -> int:
        """How many records are marked, and not purged yet."""
        return sum(map(self.in_flight, self.shards))

    def in_flight(self, shard: int = 0) -> int:
        """How many records of a shard are marked, and not purged yet."""
        return self.runner.figures(shard)["in_flight"]

    @property
    def in_flight_record_keys(self) -> set[tuple[str, Key]]:
        """The topics and keys of those records."""
        tours = [self.runner.work(shard) for shard in self.shards]
        return {key for tour in tours if isinstance(tour, Tour) for key in tour.in_flight_keys()}

    def totals(self, shard: int = 0) -> Totals:
        """What this process has done for a shard, over all its tours."""
        figures = self.runner.figures(shard)
        return Totals(**{name: figures[name] for name in Totals.__dataclass_fields__})

    def _read_meter(self) -> None:
        """Read the backlog and tell the figures, and trim, for as long as the harvest runs."""
        before: dict[int, tuple[float, int]] = {}
        table, trimmer = TableName.parse(self.config.outbox), Trimmer(self.config)
        while not self.runner.stopping.wait(self.config.limits.min_metrics_interval or 1.0):
            if not self.shards:
                continue
            try:
                with connect(self.config, "meter") as connection:
                    self.backlog = read_backlog(connection, table)
            except psycopg.Error as error:
                _log.warning("the backlog could not be read: %s", explained(error))
                continue
            for shard in self.shards:
                self._observer.tell(MeterRead(self._stats(shard, self.backlog, before)))
            trimmer.trim()

    def _stats(self, shard: int, backlog: Backlog, before: dict[int, tuple[float, int]]) -> Stats:
        figures, now = self.runner.figures(shard), time.monotonic()
        published = figures["published"]
        then, last = before.get(shard, (now, published))
        before[shard] = (now, published)
        return Stats(
            shard,
            published,
            figures["purged"],
            figures["remarked"],
            figures["parked"],
            figures["in_flight"],
            (published - last) / (now - then) if now > then else 0.0,
            backlog.records,
            backlog.oldest_seconds,
        )
