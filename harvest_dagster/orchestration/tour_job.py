"""The tour as a run: three ops, mark -> publish -> purge, in one process.

    mark      takes up the lease with an epoch of its own, starts the engine, and tells what of the
              last leader's was found
    publish   lets the engine's three stages stream, for as long as the lease lasts; says how far it
              is, and what happened
    purge     reports the account, and what a drain that was cut off has left to the next tour

The engine (`harvest.delegate`) has threads of its own; the ops' thread, which is the run's main
thread, waits and tells. Terminate raises in it, and `publish` then drains before it goes.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import psycopg

from harvest_dagster.clock import Deadline
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import read_status
from harvest_dagster.harvest.trim import Trimmer
from harvest_dagster.orchestration.logbook import PRIORITY, TourConfig, explained, follow, shown
from harvest_dagster.orchestration.part_names import NO_RETRY, OUTBOX_TAG, Names
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import counted
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.described import did


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
        with explained("the tour could not begin"):
            found = delegate.begin()
        lease = delegate.work.lease
        context.log.info(
            f"leading {lease.name}/{lease.shard} under epoch {lease.epoch}: of the last leader's,"
            f" {counted(found.get('published', 0), 'record was', 'records were')} published"
            f" already, {found.get('remarked', 0):,} remarked"
        )
        facts: dict[str, int | str] = {
            "epoch": lease.epoch,
            "leader id": str(lease.leader_id),
            "holder": lease.holder,
            "found published": found.get("published", 0),
            "remarked": found.get("remarked", 0),
        }
        yield dg.Output(delegate, "tour", metadata=facts)
        yield dg.Output(config.until, "until")

    @dg.op(
        name=names.job("publish"),
        out={"tour": handle},
        required_resource_keys={names.key},
        tags={"kind": "kafka"},
    )
    def publish(context: dg.OpExecutionContext, tour: Delegate, until: Deadline) -> Any:  # noqa: ANN401 - likewise
        """Stream from the outbox into Kafka until leadership ends, or the tour's time is up."""
        harvest: HarvestConfig = getattr(context.resources, names.key).config()
        follow(context.log, ROOM, tour, until, Trimmer(harvest).trim)
        yield dg.Output(tour, "tour", metadata=_facts(tour.work.figures))

    @dg.op(name=names.job("purge"), required_resource_keys={names.key}, tags={"kind": "postgres"})
    def purge(context: dg.OpExecutionContext, tour: Delegate) -> None:
        """Report what was done, and what is left."""
        harvest: HarvestConfig = getattr(context.resources, names.key).config()
        with explained("the account could not be settled"), _reading(harvest) as reading:
            status = read_status(reading, TableName.parse(harvest.outbox), harvest.name, events=0)
        figures = tour.work.figures
        context.log.info(f"{did(tour.led, figures)}; {status.backlog.records:,} left in the outbox")
        if figures["in_flight"]:
            context.log.warning(
                f"{counted(figures['in_flight'], 'record')} did not settle in time: that is for the"
                " next tour"
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
        tags={OUTBOX_TAG: names.key, **PRIORITY, **NO_RETRY},
        config=shown("mark"),
    )
    def tour() -> None:
        # Ops of two harvests may not share a name, but each run's steps are called the same.
        running = publish.alias("publish")(*mark.alias("mark")())
        purge.alias("purge")(running)

    return tour


def _reading(harvest: HarvestConfig) -> psycopg.Connection[Any]:
    return connect(Harvesting(harvest).postgres_url, f"{harvest.name} report")


def _facts(figures: Mapping[str, int]) -> Mapping[str, int]:
    """Return the account of a tour, without what is so just now alone."""
    account = {name: count for name, count in figures.items() if name != "in_flight"}
    return {"recoveries" if name == "rounds" else name: count for name, count in account.items()}
