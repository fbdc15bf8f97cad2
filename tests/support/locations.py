"""Runs as a code location launches them, in this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def run_in(
    location: str,
    asset: dg.AssetsDefinition,
    instance: dg.DagsterInstance,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Materialize an asset in a run that a code location has launched; return the run's id."""
    definitions = dg.Definitions([asset], executor=dg.in_process_executor)
    job = definitions.resolve_implicit_global_asset_job_def()
    run = instance.create_run_for_job(job, tags=tags, remote_job_origin=_origin(location, job.name))
    execute_run(InMemoryJob(job), run, instance, raise_on_error=True)
    return run.run_id


def _origin(location: str, job: str) -> RemoteJobOrigin:
    code = InProcessCodeLocationOrigin(LoadableTargetOrigin(), location_name=location)
    return RemoteRepositoryOrigin(code, "__repository__").get_job_origin(job)


def metadata(instance: dg.DagsterInstance, run: str) -> list[dict[str, Any]]:
    """Return the metadata of each materialization of a run."""
    found = instance.all_logs(run, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    events = [entry.dagster_event for entry in found if entry.dagster_event is not None]
    return [
        {
            name: value.value
            for name, value in told.step_materialization_data.materialization.metadata.items()
        }
        for told in events
    ]


def warnings(instance: dg.DagsterInstance, run: str) -> list[str]:
    """Return what the log of a run warns of."""
    lines = instance.all_logs(run)
    return [line.user_message for line in lines if line.level == logging.WARNING]
