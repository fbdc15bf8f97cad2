"""An operator's jobs, run as the Launchpad runs them, and what their runs tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster import ExecuteInProcessResult

from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.operate import op_name, operator_jobs
from harvest_dagster.orchestration.part_names import Names
from tests.support.place import Place

NAMES = Names("shop")
Press = Callable[..., ExecuteInProcessResult]


@pytest.fixture
def press(place: Place) -> Press:
    """Launch one of the jobs with a config, as an operator does."""
    kafka = {key: str(value) for key, value in place.kafka.items()}

    def run(verb: str, *, table: str = "outbox", **config: Any) -> ExecuteInProcessResult:
        (job,) = [job for job in operator_jobs(NAMES) if job.name == NAMES.job(verb)]
        harvest = HarvestResource(
            outbox=OutboxResource(postgres=place.postgres, table=table),
            kafka=KafkaResource(settings=kafka),
            neli=NeliResource(name=place.name, leader_topic=f"{place.name}.neli"),
            drain_timeout="5s",
        )
        return job.execute_in_process(
            run_config={"ops": {op_name(NAMES, verb): {"config": config}}},
            resources={NAMES.key: harvest},
            instance=dg.DagsterInstance.ephemeral(),
            raise_on_error=False,
        )

    return run


def facts(done: ExecuteInProcessResult) -> dict[str, Any]:
    """The metadata of a job's output, once it has gone well."""
    assert done.success, why(done)
    (output,) = [e for e in done.all_events if e.event_type_value == "STEP_OUTPUT"]
    return {key: value.value for key, value in output.step_output_data.metadata.items()}


def records(done: ExecuteInProcessResult, name: str) -> list[dict[str, Any]]:
    """A table among that metadata."""
    return [dict(record.data) for record in facts(done)[name].records]


def why(done: ExecuteInProcessResult) -> str:
    """Why a job has failed, as its run's page begins."""
    (failed,) = [e for e in done.all_events if e.event_type_value == "STEP_FAILURE"]
    said = failed.step_failure_data.user_failure_data
    return "" if said is None else str(said.description)
