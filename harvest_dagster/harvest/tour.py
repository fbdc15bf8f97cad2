"""A tour: one leader's harvest of one shard, from its lease to the end of it.

                       ┌────────────────── a round ──────────────────┐
    start ──▶ recover ─│▶ marker ──▶ publisher ──▶ purger            │──▶ ended
                 ▲     └─────────────────────────────────────────────┘
                 │                     │ failed: a connection, Kafka, a rejected record
                 └──── refresh ◀───────┘

`run` may be called on any thread and blocks until the tour has ended; it opens the connections,
recovers, starts the three stages' threads (their own pages say what each may block on), and waits
for them. `drain`, `abort` and the figures may be called from any other thread, and do not block.

When a round fails the lease is refreshed, which gives it a new epoch: whatever statement of the
failed round still runs in the database, unseen, can write no more. Then, after a pause, the tour
recovers and goes on.

A tour ends when it is drained (the lease was revoked, or its time is up): what is marked goes all
the way, bounded in time. Or when it is fenced or aborted: then it writes nothing more at all.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from uuid import UUID

import psycopg
from confluent_kafka import KafkaException

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import FencedError, KafkaError
from harvest_dagster.harvest.batch import Key
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.mark import SWEEP_SECONDS
from harvest_dagster.harvest.recover import Recovery
from harvest_dagster.harvest.rounds import Before, RoundRun
from harvest_dagster.harvest.stage import RemarkError
from harvest_dagster.kafka import refusals as kafka_refusals
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres import refusals
from harvest_dagster.text import one_line

_log = logging.getLogger(__name__)
_RECOVERABLE = (RemarkError, psycopg.Error, KafkaException, KafkaError)
_LONGEST_PAUSE = 10.0
_SOUND_SECONDS = 30.0


@dataclass(slots=True)
class Totals:
    """What a tour has done."""

    marked: int = 0
    published: int = 0
    purged: int = 0
    remarked: int = 0
    parked: int = 0
    rounds: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Tour:
    """Harvests one shard for as long as its lease lasts."""

    def __init__(
        self,
        config: HarvestConfig,
        lease: Lease,
        trusted: Callable[[], bool],
        refreshed: Callable[[Lease], None] = lambda _lease: None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._config, self.lease = config, lease
        self._trusted, self._refreshed = trusted, refreshed
        self._sweep_seconds = sweep_seconds
        self._before = Before()
        self._ended = Totals()
        self._current: RoundRun | None = None
        self._ending = threading.Event()
        self._drain_by: Deadline | None = None
        self._aborted = False

    @property
    def totals(self) -> Totals:
        """What was done so far, the round under way included."""
        now, current = Totals(**asdict(self._ended)), self._current
        if current is not None:
            _add(now, current)
        return now

    @property
    def recovery(self) -> Recovery | None:
        """What the round under way found when it began, once it has."""
        current = self._current
        return current.recovery if current else None

    @property
    def found(self) -> dict[str, int] | None:
        """What the last leader had left: how much was published already, and what is remarked."""
        recovery = self.recovery
        if recovery is None:
            return None
        return {"published": recovery.purged, "remarked": recovery.remarked}

    @property
    def in_flight(self) -> int:
        """How many records are marked, and not purged yet."""
        current = self._current
        return current.window.records if current else 0

    @property
    def figures(self) -> dict[str, int]:
        """What was done so far, and what is in flight."""
        return {**asdict(self.totals), "in_flight": self.in_flight}

    @property
    def held(self) -> dict[str, str]:
        """The topics that can't be published to just now, each with the reason."""
        return dict(self._before.held_topics)

    def in_flight_keys(self) -> set[tuple[str, Key]]:
        """The topics and keys of the records in flight."""
        current = self._current
        return current.window.keys() if current else set()

    def run(self) -> None:
        """Harvest until the lease ends; raise FencedError if it was lost."""
        self._record("tour_started", {"holder": self.lease.holder})
        self._harvest()
        self._record("tour_ended", asdict(self.totals))

    def drain(self, seconds: float) -> None:
        """Mark no more, and end when all that is marked has gone out, or the time is over.

        Whoever asks again may shorten that time, and never put it off.
        """
        if self._drain_by is None:
            self._drain_by = Deadline(seconds)
        self._drain_by.shorten(seconds)
        self._ending.set()
        current = self._current
        if current is not None:
            current.drain_by = self._drain_by
            current.flow.drain()

    def abort(self) -> None:
        """End at once, without another write."""
        self._aborted = True
        self._ending.set()
        current = self._current
        if current is not None:
            current.flow.fail(FencedError("the lease was lost"))

    def _harvest(self) -> None:
        pause = self._config.limits.io_error_backoff
        failures = 0
        while not self._ending.is_set():
            started = time.monotonic()
            try:
                self._run_round()
            except _RECOVERABLE as failure:
                remark = _remark(failure)
                _log.warning("the round ended early, and is begun anew: %s", remark)
                if not remark.is_progress:
                    failures = 0 if time.monotonic() - started > _SOUND_SECONDS else failures + 1
                    self._ending.wait(min(pause * 2 ** max(failures - 1, 0), _LONGEST_PAUSE))
                self._refresh(remark)
        if self._aborted:
            raise FencedError("the lease was lost")

    def _run_round(self) -> None:
        current = RoundRun(
            self._config, self.lease, self._before, self._trusted, self._sweep_seconds
        )
        self._current = current
        if self._aborted:
            raise FencedError("the lease was lost")
        if self._ending.is_set():
            current.drain_by = self._drain_by
            current.flow.drain()
        try:
            current.run()
        finally:
            self._current = None
            _add(self._ended, current)
        self._before = Before(
            held_topics=self._before.held_topics,
            # Each record went by itself, and none was refused: together they were too large.
            small_batches=self._before.small_batches or self._before.careful,
        )

    def _refresh(self, remark: RemarkError) -> None:
        """Take a new epoch, so that nothing of the failed round can write any more."""
        tried: list[UUID] = []
        while not self._ending.is_set():
            with suppress(psycopg.Error), connect(self._config, "refresh") as connection:
                new = leases.refresh(connection, self.lease, one_line(remark), tried)
                self._go_on_under(new, remark)
                return
            self._ending.wait(self._config.limits.io_error_backoff)

    def _go_on_under(self, lease: Lease, remark: RemarkError) -> None:
        self.lease = lease
        self._refreshed(lease)
        held = remark.held_topics
        for topic in held.keys() - self._before.held_topics.keys():
            self._record("held", {"topic": topic, "reason": held[topic]})
        self._before = Before(
            reason=one_line(remark),
            careful=remark.careful,
            rejected=remark.rejected,
            held_topics=self._before.held_topics | held,
            small_batches=self._before.small_batches,
        )

    def _record(self, kind: str, detail: dict[str, object]) -> None:
        with suppress(psycopg.Error), connect(self._config, "event") as connection:
            Fence(self.lease).note(connection, kind, detail)


def _add(totals: Totals, run: RoundRun) -> None:
    totals.rounds += 1
    totals.parked += run.parked
    totals.remarked += run.recovery.remarked if run.recovery else 0
    for name in ("marked", "published", "purged"):
        setattr(totals, name, getattr(totals, name) + run.counts(name))


def _remark(failure: BaseException) -> RemarkError:
    """Return why the batches in flight are given up, whatever has failed."""
    if isinstance(failure, RemarkError):
        return failure
    if isinstance(failure, psycopg.Error):
        return RemarkError(refusals.explained(failure))
    if isinstance(failure, KafkaException):
        return RemarkError(kafka_refusals.explained(failure))
    return RemarkError(one_line(failure))
