"""One round of a tour: open clients, recover, run the three stages until they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg
from confluent_kafka import OFFSET_INVALID, TopicPartition

from harvest_dagster.clock import Deadline
from harvest_dagster.harvest.batch import Row, Window
from harvest_dagster.harvest.clients import Batching, Clients, connect, is_compressed
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.mark import SWEEP_SECONDS, Marker, MarkLimits
from harvest_dagster.harvest.park import park
from harvest_dagster.harvest.placement import rule_of
from harvest_dagster.harvest.plain_claims import Claims, PlainClaims
from harvest_dagster.harvest.publish_at_least_once import AtLeastOncePublisher
from harvest_dagster.harvest.publish_exactly_once import ExactlyOncePublisher
from harvest_dagster.harvest.publish_sequenced import SequencedPublisher
from harvest_dagster.harvest.purge import Purger
from harvest_dagster.harvest.purge_records import RecordPurger
from harvest_dagster.harvest.recover import (
    Recovery,
    are_exactly_once,
    committed_batch,
    read_identity,
    recover,
)
from harvest_dagster.harvest.sequenced_claims import (
    SequencedBatch,
    SequencedClaims,
    leave_out_held,
    left_claims,
)
from harvest_dagster.harvest.stage import Round
from harvest_dagster.harvest.table_statements import Sharding, Statements, statements_for
from harvest_dagster.harvest.topic_book import TopicBook
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_log = logging.getLogger(__name__)
_SQL = statements("harvest_dagster.harvest", "claims.sql")
_CANCEL_SECONDS = 2.0
_JOIN_SECONDS = 5.0
_LOOK_SECONDS = 0.1
Publisher: TypeAlias = ExactlyOncePublisher | AtLeastOncePublisher | SequencedPublisher


@dataclass(frozen=True, slots=True)
class Before:
    """What a round inherits from the one before."""

    reason: str = "the last leader ended"
    careful: bool = False
    rejected: Sequence[tuple[Row, str]] = ()
    held_topics: dict[str, str] = field(default_factory=dict)
    small_batches: bool = False


class RoundRun:
    """A round under way; made by the tour, which calls `run` on its own thread."""

    def __init__(
        self,
        config: HarvestConfig,
        lease: Lease,
        before: Before,
        trusted: Callable[[], bool],
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._config, self._lease, self._before = config, lease, before
        self._sweep_seconds = sweep_seconds
        self._fence = Fence(lease)
        limits = config.limits
        self.window = Window(limits.max_in_flight_records, limits.max_in_flight_bytes)
        self.flow = Round(self.window, trusted)
        self.recovery: Recovery | None = None
        self.parked = 0
        self._identity = ""
        self.drain_by: Deadline | None = None
        self._stages: tuple[Any, ...] = ()
        self._connections: list[psycopg.Connection[Any]] = []

    def counts(self, name: str) -> int:
        """What the stages have `marked`, `published` or `purged` so far."""
        return sum(getattr(stage, name, 0) for stage in self._stages)

    def run(self) -> None:
        """Recover, then harvest until the round ends; raise what ended it early."""
        with ExitStack() as stack:
            marking, purging = self._connect("mark", stack), self._connect("purge", stack)
            for connection in (marking, purging):
                connection.execute(_SQL["durable"].text)
            sql = self._statements(purging)
            purger = Purger(purging, sql, self._fence)
            self.parked = self._park(purging, sql)
            left = left_claims(purging, self._fence, sql.claimed, self._config.shards)
            is_suited = self._suit(left)
            self.flow.check()
            clients = Clients.open(self._config, self._lease.shard, self._batching())
            stack.callback(clients.close)
            recovery = self._recover(purging, purger, clients)
            held = self._before.held_topics
            uncompacted = self._config.delivery == "sequenced" and not is_suited
            topics = TopicBook(clients.producers[0], clients.admin, held, uncompacted=uncompacted)
            settling = [batch for batch in left if leave_out_held(batch, topics)]
            claims = self._claims(marking, sql, topics, recovery.next_batch)
            self._hasty(marking, purging).execute(_SQL["hasty"].text)
            settles = is_suited or bool(settling)
            limits = self._mark_limits(recovery, settles=settles, left=bool(left))
            marker = Marker(marking, sql, self._fence, topics, limits, claims)
            records = RecordPurger(purging, sql, self._fence)
            publisher = self._publisher(clients, recovery, records)
            for batch in settling:
                self.window.take(batch)
                self.flow.batches.put(batch)
            self._stages = (marker, publisher, purger)
            self._run_stages(marker, publisher, purger)
        if self.flow.failure is not None:
            raise self.flow.failure

    def _run_stages(
        self,
        marker: Marker,
        publisher: Publisher,
        purger: Purger,
    ) -> None:
        named: dict[str, Any] = {"mark": marker, "publish": publisher}
        if isinstance(publisher, ExactlyOncePublisher):  # the others purge themselves
            named["purge"] = purger
        threads = [self.flow.start(n, _bound(stage.run, self.flow)) for n, stage in named.items()]
        while any(thread.is_alive() for thread in threads) and not self.flow.halted.is_set():
            threads[-1].join(_LOOK_SECONDS)
            if self.drain_by is not None and self.drain_by.over:
                _log.warning("what was in flight did not settle in time, and is cut off")
                self.flow.halt()
        self._end(threads)

    def _end(self, threads: list[threading.Thread]) -> None:
        """Wait for the stages; a statement that still runs is cancelled."""
        if self.flow.halted.is_set():
            for connection in self._connections:
                with suppress(psycopg.Error):  # it may be gone already
                    connection.cancel_safe(timeout=_CANCEL_SECONDS)
        for thread in threads:
            thread.join(_JOIN_SECONDS)

    def _suit(self, left: Sequence[SequencedBatch]) -> bool:
        """Publish what was claimed as `sequenced` that way, and in this round nothing else."""
        waits = {row[1] for batch in left for row in batch.rows} - self._before.held_topics.keys()
        if not waits or self._config.delivery == "sequenced":
            return False
        # The user's settings for the producer are for his delivery, and need not fit this one.
        way = {"delivery": "sequenced", "producer_kafka": {}}
        self._config = self._config.model_copy(update=way)
        return True

    def _claims(
        self, connection: psycopg.Connection[Any], sql: Statements, topics: TopicBook, number: int
    ) -> Claims:
        delivery, fence = self._config.delivery, self._fence
        if delivery != "sequenced":
            is_exactly_once = delivery == "exactly_once"
            return PlainClaims(connection, fence, sql.claim, number, exactly_once=is_exactly_once)
        rule = rule_of({**self._config.base_kafka, **self._config.producer_kafka})
        return SequencedClaims(connection, fence, topics, rule, self._config.shards, number)

    def _connect(self, what: str, stack: ExitStack) -> psycopg.Connection[Any]:
        connection = connect(self._config, what)
        stack.callback(connection.close)
        self._connections.append(connection)
        return connection

    def _statements(self, connection: psycopg.Connection[Any]) -> Statements:
        return statements_for(
            connection,
            TableName.parse(self._config.outbox),
            Sharding(self._lease.shard, self._config.shards),
            mark_rows=self._config.marks == "rows",
            retain=self._config.retention is not None,
        )

    def _hasty(
        self, marking: psycopg.Connection[Any], purging: psycopg.Connection[Any]
    ) -> psycopg.Connection[Any]:
        """Return the connection whose writes a crash of PostgreSQL may take back.

        Exactly once it is the purges: what comes back, Kafka's number purges again; sequenced too:
        it is published again as it was, and each is a double. At least once it is the claims: what
        is in flight is marked again after a crash, claimed or not.
        """
        return marking if self._config.delivery == "at_least_once" else purging

    def _park(self, connection: psycopg.Connection[Any], sql: Statements) -> int:
        hold_keys = self._config.on_rejected == "hold_key"
        return park(connection, sql, self._fence, self._before.rejected, hold_keys=hold_keys)

    def _recover(
        self, connection: psycopg.Connection[Any], purger: Purger, clients: Clients
    ) -> Recovery:
        committed = None
        if self._config.delivery == "exactly_once":
            self._identity = read_identity(connection)
            committed = committed_batch(clients.group, self._place())
        elif are_exactly_once(connection, self._fence):
            self._identity = read_identity(connection)
            committed = self._committed_before()
        self.recovery = recover(connection, purger, self._fence, committed, self._before.reason)
        kept = {"days": self._config.event_days, "retention": self._config.retention or 0}
        connection.execute(_SQL["trim"].text, {"name": self._lease.name, **kept})
        return self.recovery

    def _committed_before(self) -> int | None:
        """Take over the transactions of a leader that had another delivery than this one."""
        # The user's settings for the producer are for this delivery, and need not fit the other.
        way = {"delivery": "exactly_once", "producer_kafka": {}}
        former = self._config.model_copy(update=way)
        clients = Clients.open(former, self._lease.shard, Batching.LARGE)
        try:
            return committed_batch(clients.group, self._place())
        finally:
            clients.close()

    def _publisher(self, clients: Clients, recovery: Recovery, records: RecordPurger) -> Publisher:
        if self._config.delivery == "sequenced":
            return SequencedPublisher(clients, records, careful=self._before.careful)
        if self._config.delivery == "exactly_once":
            return ExactlyOncePublisher(
                clients, self._place(), recovery.committed, careful=self._before.careful
            )
        return AtLeastOncePublisher(clients, records, careful=self._before.careful)

    def _place(self) -> TopicPartition:
        topic, shard = self._config.leader_topic, self._lease.shard
        return TopicPartition(topic, shard, OFFSET_INVALID, self._identity)

    def _batching(self) -> Batching:
        if self._before.careful:
            return Batching.SINGLE
        return Batching.SMALL if self._before.small_batches else Batching.LARGE

    def _mark_limits(self, recovery: Recovery, *, settles: bool, left: bool) -> MarkLimits:
        """Return how much to mark; a careful round ends with what the one before had in flight.

        One that settles what was claimed before marks nothing.
        """
        limits = self._config.limits
        return MarkLimits(
            limits.mark_query_records,
            limits.max_in_flight_bytes,
            in_all=0 if settles else recovery.remarked if self._before.careful else None,
            left=left,
            compressed=is_compressed(self._config),
            sweep_seconds=self._sweep_seconds,
        )


def _bound(run: Callable[[Round], None], flow: Round) -> Callable[[], None]:
    return lambda: run(flow)
