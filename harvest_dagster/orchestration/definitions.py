"""All of one harvest, for a project's Definitions."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from harvest_dagster.orchestration.assets import harvest_assets
from harvest_dagster.orchestration.checks import harvest_checks
from harvest_dagster.orchestration.names import Names
from harvest_dagster.orchestration.operate import operator_jobs
from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.orchestration.sensor import leader_sensor
from harvest_dagster.orchestration.tour import tour_job


def harvest_definitions(
    harvest: HarvestResource | None = None,
    *,
    key: str = "harvest",
    topics: Sequence[str] = (),
    upstream: Sequence[dg.CoercibleToAssetKey] = (),
    running: bool = False,
) -> dg.Definitions:
    """Make the assets, checks, jobs, sensor and resources of one harvest.

    `key` sets it apart from others; `topics` and `upstream` are what the lineage shows behind and
    before the outbox. What is wrong in the resource itself is refused here, when it is loaded.
    """
    names = Names(key)
    resource = harvest or HarvestResource()
    resource.check()
    return dg.Definitions(
        assets=harvest_assets(names, topics, upstream),
        asset_checks=harvest_checks(names),
        jobs=[tour_job(names), *operator_jobs(names)],
        sensors=[leader_sensor(names, topics, running=running)],
        resources={names.key: resource, names.handles: dg.mem_io_manager},
    )
