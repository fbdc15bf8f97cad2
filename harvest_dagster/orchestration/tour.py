"""The tour as a run: three ops, mark -> publish -> purge, in one process.

    mark      takes up the lease with an epoch of its own, starts the engine, and tells what of the
              last leader's was found
    publish   lets the engine's three stages stream, for as long as the lease lasts; says how far it
              is, and what happened
    purge     reports the account, and what a drain that was cut off has left to the next tour

The engine (`harvest.delegate`) has threads of its own; the ops' thread, which is the run's main
thread, waits and tells. Terminate raises in it, and `publish` then drains before it goes.
"""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
from pydantic import Field

from harvest_dagster.errors import HarvestError
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.status import read_status
from harvest_dagster.harvest.trim import Trimmer
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.events import read as read_events
from harvest_dagster.orchestration.names import NO_RETRY, OUTBOX_TAG, Names
from harvest_dagster.orchestration.telling import ages, told
from harvest_dagster.postgres import refusals
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import one_line, printable
from harvest_dagster.work.delegate import Delegate

_LOOK_SECONDS = 1.0
_EVENTS_SECONDS = 2.0
_PROGRESS_SECONDS = 60.0
_MOST_EVENTS = 50
_PRIORITY = "10"  # it waits behind no back-fill


class TourConfig(dg.Config):
    """Which shard to harvest, and for how long."""

    shard: int = Field(default=0, description="0, unless several leaders share the outbox")
    minutes: float | None = Field(
        default=None,
        gt=0,
        description="end after this; else it hands over to the next tour, which the sensor starts"
        " after an hour",
    )


def tour_job(names: Names) -> dg.JobDefinition:
    """Make the job that the sensor runs for as long as it leads."""
    handle = dg.Out(io_manager_key=names.handles)

    @dg.op(
        name=names.job("mark"),
        out={"tour": handle, "until": handle},
        required_resource_keys={names.key},
        tags={"kind": "postgres"},
    )
    def mark(context: dg.OpExecutionContext, config: TourConfig) -> Any:  # noqa: ANN401 - Dagster's outputs
        """Take up the lease, and recover what the last leader left."""
        settle_heap()
        harvest: HarvestConfig = getattr(context.resources, names.key).config()
        delegate = Delegate(Harvesting(harvest), config.shard, context.run_id)
        with _explained("the tour could not begin"):
            found = delegate.begin()
        lease = delegate.work.lease
        context.log.info(
            f"leading {lease.name}/{lease.shard} under epoch {lease.epoch}: of the last leader's,"
            f" {found.get('published', 0):,} records were published already,"
            f" {found.get('remarked', 0):,} are remarked"
        )
        facts: dict[str, int | str] = {
            "epoch": lease.epoch,
            "leader id": str(lease.leader_id),
            "holder": lease.holder,
            "found published": found.get("published", 0),
            "remarked": found.get("remarked", 0),
        }
        yield dg.Output(delegate, "tour", metadata=facts)
        minutes = math.inf if config.minutes is None else config.minutes
        yield dg.Output(time.monotonic() + minutes * 60, "until")

    @dg.op(
        name=names.job("publish"),
        out={"tour": handle},
        required_resource_keys={names.key},
        tags={"kind": "kafka"},
    )
    def publish(context: dg.OpExecutionContext, tour: Delegate, until: float) -> Any:  # noqa: ANN401 - likewise
        """Stream from the outbox into Kafka until leadership ends, or the tour's time is up."""
        harvest: HarvestConfig = getattr(context.resources, names.key).config()
        try:
            with _explained("the tour ended early"):
                _stream(context, tour, harvest, until)
        finally:
            tour.close(tour.drain_seconds)
        context.log.info(printable(f"the tour ends: {tour.reason}"))
        yield dg.Output(tour, "tour", metadata=_facts(tour.work.figures))

    @dg.op(name=names.job("purge"), required_resource_keys={names.key}, tags={"kind": "postgres"})
    def purge(context: dg.OpExecutionContext, tour: Delegate) -> None:
        """Report what was done, and what is left."""
        harvest: HarvestConfig = getattr(context.resources, names.key).config()
        with _explained("the account could not be settled"), connect(harvest, "report") as reading:
            status = read_status(reading, TableName.parse(harvest.outbox), harvest.name, events=0)
        figures = tour.work.figures
        context.log.info(f"{told(figures)}; {status.backlog.records:,} wait in the outbox")
        if figures["in_flight"]:
            context.log.warning(
                f"{figures['in_flight']:,} records did not settle in time: the next tour settles"
                " them"
            )
        context.add_output_metadata(
            {
                **_facts(figures),
                "ended because": tour.reason,
                "left in flight": figures["in_flight"],
                "backlog": status.backlog.records,
            }
        )

    @dg.job(
        name=names.job("tour"),
        executor_def=dg.in_process_executor,
        description="One long run that harvests; the sensor starts it, and it ends in good order.",
        tags={OUTBOX_TAG: names.key, "dagster/priority": _PRIORITY, **NO_RETRY},
    )
    def tour() -> None:
        # Ops of two harvests may not share a name, but each run's steps are called the same.
        running = publish.alias("publish")(*mark.alias("mark")())
        purge.alias("purge")(running)

    return tour


def _stream(
    context: dg.OpExecutionContext, tour: Delegate, config: HarvestConfig, until: float
) -> None:
    """Wait for the end, tell what happens meanwhile, and trim."""
    teller, trimmer = _Teller(context, tour, config), Trimmer(config)
    while not tour.wait(_LOOK_SECONDS):
        teller.tell()
        trimmer.trim()
        if time.monotonic() > until:
            tour.drain("its time is up")
    teller.tell_events()


class _Teller:
    """Writes the run's log: what happened, and once a minute how far it is."""

    def __init__(
        self, context: dg.OpExecutionContext, tour: Delegate, config: HarvestConfig
    ) -> None:
        self._log, self._tour, self._config = context.log, tour, config
        self._seen = 0
        self._began = time.monotonic()
        self._next_events = self._next_progress = self._began
        self._last = (self._began, 0)

    def tell(self) -> None:
        """Tell what is due."""
        time_ = time.monotonic()
        if time_ >= self._next_events:
            self._next_events = time_ + _EVENTS_SECONDS
            self.tell_events()
        if time_ >= self._next_progress:
            self._next_progress = time_ + _PROGRESS_SECONDS
            self._tell_progress(time_)

    def tell_events(self) -> None:
        """Tell of leases, remarks and parked records since the last time."""
        for event in self._events():
            level = self._log.info if event.kind in _GOOD else self._log.warning
            level(described(event))

    def _events(self) -> list[Event]:
        lease = self._tour.work.lease
        since = time.monotonic() - self._began + 2 * _EVENTS_SECONDS
        try:
            with connect(self._config, "events") as connection:
                found = read_events(connection, lease.name, (), since, _MOST_EVENTS)
        except psycopg.Error as error:
            self._log.warning(f"the events could not be read: {refusals.told(error)}")
            return []
        new = [event for event in reversed(found) if event.id > self._seen]
        self._seen = max((event.id for event in new), default=self._seen)
        return [event for event in new if event.shard == lease.shard]

    def _tell_progress(self, time_: float) -> None:
        then, before = self._last
        figures = self._tour.work.figures
        published = figures["published"]
        self._last = (time_, published)
        rate = (published - before) / (time_ - then) if time_ > then else 0.0
        self._log.info(
            f"{told(figures)}, {rate:,.0f}/s, {figures['in_flight']:,} in flight,"
            f" running for {ages(time_ - self._began)}"
        )


_GOOD = {"acquired", "refreshed", "tour_started", "tour_ended", "released", "requeued", "revoked"}


def described(event: Event) -> str:
    """Write an event in a line, whatever has come into its details."""
    epoch = [] if event.epoch is None else [f"epoch {event.epoch}"]
    details = [f"{key.replace('_', ' ')} {value}" for key, value in event.detail.items()]
    return printable(f"{event.kind}: {', '.join([*epoch, *details])}")


def _facts(figures: Mapping[str, int]) -> Mapping[str, int]:
    """Return the account of a tour, without what is so just now alone."""
    account = {name: count for name, count in figures.items() if name != "in_flight"}
    return {"recoveries" if name == "rounds" else name: count for name, count in account.items()}


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Fail with the cause first, and without a stack of ours."""
    try:
        yield
    except (HarvestError, psycopg.Error) as error:
        cause = refusals.told(error) if isinstance(error, psycopg.Error) else one_line(error)
        raise dg.Failure(f"{cause} ({what})", allow_retries=False) from None
