"""The operator's jobs as Dagster has them: their names, their configs, and what these take."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from dagster._core.errors import DagsterInvalidConfigError

from harvest_dagster.orchestration import HarvestResource
from harvest_dagster.orchestration.operate import op_name, operator_jobs
from harvest_dagster.orchestration.part_names import Names

VERBS = ["resign", "remark", "requeue", "discard", "create_outbox", "migrate", "stash"]


def test_names() -> None:
    """Each job is called by its harvest's key and what it does, and says that."""
    jobs = operator_jobs(Names("shop"))
    assert [job.name for job in jobs] == [f"shop_{verb}" for verb in VERBS]
    assert all(job.description for job in jobs)


def test_two_harvests_in_one_location() -> None:
    """The jobs of several harvests do not get in each other's way."""
    keys = ("shop", "bank")
    defs = dg.Definitions(
        jobs=[job for key in keys for job in operator_jobs(Names(key))],
        resources={key: HarvestResource() for key in keys},
    )
    dg.Definitions.validate_loadable(defs)
    jobs = defs.get_repository_def().get_all_jobs()
    assert len([job for job in jobs if job.name.startswith(keys)]) == 2 * len(VERBS)


@pytest.mark.parametrize("job", operator_jobs(Names("shop")), ids=lambda job: job.name)
def test_every_field_has_a_default_and_a_description(job: dg.JobDefinition) -> None:
    """The Launchpad shows what may be given, and what happens if nothing is."""
    (node,) = job.graph.nodes
    fields = node.definition.config_schema.config_type.fields  # type: ignore[union-attr]
    assert fields
    for field in fields.values():
        assert (field.is_required, bool(field.description)) == (False, True)


@pytest.mark.parametrize("job", operator_jobs(Names("shop")), ids=lambda job: job.name)
def test_the_launchpad_shows_the_options_and_nothing_else(job: dg.JobDefinition) -> None:
    """All of them are filled in, also those that are null; resources were set in code."""
    (node,) = job.graph.nodes
    fields = node.definition.config_schema.config_type.fields  # type: ignore[union-attr]
    assert job.run_config is not None
    assert [*job.run_config] == ["ops"]
    assert {*job.run_config["ops"][node.name]["config"]} == {*fields}


@pytest.mark.parametrize(
    ("verb", "config"),
    [
        ("create_outbox", {"kind": "mysql"}),
        ("requeue", {"ids": ["eleven"]}),
        ("discard", {"everything": True}),
        ("resign", {"shard": "first"}),
        ("migrate", {"dry_run": "perhaps"}),
    ],
)
def test_a_config_is_checked_before_it_runs(verb: str, config: dict[str, Any]) -> None:
    """What is none of a field's values, or no field, does not even start."""
    names = Names("shop")
    (job,) = [job for job in operator_jobs(names) if job.name == names.job(verb)]
    with pytest.raises(DagsterInvalidConfigError):
        job.execute_in_process(
            run_config={"ops": {op_name(names, verb): {"config": config}}},
            resources={"shop": HarvestResource()},
            instance=dg.DagsterInstance.ephemeral(),
        )
