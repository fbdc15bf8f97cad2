"""The tour of whatever is led as a run of one op, `work`; a harvest has its three: see `tour`."""

import dagster as dg

from harvest_dagster.orchestration.checks import LedResource
from harvest_dagster.orchestration.logbook import PRIORITY, TourConfig, explained, follow, shown
from harvest_dagster.orchestration.part_names import NO_RETRY, OUTBOX_TAG, Names
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.described import did
from harvest_dagster.work.room import Room

WORK = "work"
"""The op."""


def led_job(names: Names, room: Room) -> dg.JobDefinition:
    """Make the job that the sensor runs for as long as it leads."""

    @dg.op(name=names.job(WORK), out=dg.Out(dg.Nothing), required_resource_keys={names.key})
    def work(context: dg.OpExecutionContext, config: TourConfig) -> None:
        """Take up the lease, and work until leadership ends, or the tour's time is up."""
        resource: LedResource = getattr(context.resources, names.key)
        tour, until = Delegate(resource.led(), config.shard, context.run_id), config.until
        with explained("the tour could not begin"):
            tour.begin()
        lease = tour.work.lease
        context.log.info(f"leading {lease.name}/{lease.shard} under epoch {lease.epoch}")
        follow(context.log, room, tour, until)
        figures = tour.work.figures
        context.log.info(did(tour.led, figures))
        context.add_output_metadata({**figures, "epoch": lease.epoch, "ended because": tour.reason})

    @dg.job(
        name=names.job("tour"),
        executor_def=dg.in_process_executor,
        description="One long run that works; the sensor starts it, and it ends in good order.",
        tags={OUTBOX_TAG: names.key, **PRIORITY, **NO_RETRY},
        config=shown(WORK),
    )
    def tour() -> None:
        work.alias(WORK)()

    return tour
