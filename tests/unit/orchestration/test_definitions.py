"""What one call makes, and several of them in one code location."""

from __future__ import annotations

import dagster as dg
import pytest

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    Names,
    NeliResource,
    harvest_assets,
    harvest_definitions,
    leader_sensor,
    tour_job,
)

VERBS = ("create_outbox", "discard", "migrate", "pump", "remark", "requeue", "resign", "tour")


def test_two_harvests_in_one_location() -> None:
    """Each has its own jobs, sensor and assets; nothing of them has the same name."""
    both = dg.Definitions.merge(
        harvest_definitions(topics=["orders"], upstream=["orders"]),
        harvest_definitions(key="payments", topics=["payments"]),
    )
    repository = both.get_repository_def()
    names = {job.name for job in repository.get_all_jobs()}
    assert {f"{key}_{verb}" for key in ("harvest", "payments") for verb in VERBS} <= names
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "harvest_leader",
        "payments_leader",
    }


def test_parts_by_themselves() -> None:
    """A project that wants other jobs or checks puts together what it needs."""
    names = Names("own")
    resources = {names.key: HarvestResource(), names.handles: dg.mem_io_manager}
    own = dg.Definitions(
        assets=harvest_assets(names, ["t"], []),
        jobs=[tour_job(names)],
        sensors=[leader_sensor(names, ["t"], running=True)],
        resources=resources,
    )
    dg.Definitions.validate_loadable(own)


def test_the_steps_of_a_tour() -> None:
    """Its ops are mark, publish and purge, whatever the harvest is called."""
    job = harvest_definitions(key="payments").resolve_job_def("payments_tour")
    assert {node.name for node in job.nodes} == {"mark", "publish", "purge"}


def test_the_lineage_is_one_graph() -> None:
    """From the assets that stash, through the outbox, to the topics."""
    graph = harvest_definitions(topics=["a.b"], upstream=["shop"]).resolve_asset_graph()
    outbox = dg.AssetKey(["harvest", "outbox"])
    assert graph.get(outbox).parent_keys == {dg.AssetKey("shop")}
    assert graph.get(dg.AssetKey(["kafka", "a.b"])).parent_keys == {outbox}
    for what in ("lease", "remarks", "parked"):
        node = graph.get(dg.AssetKey(["harvest", what]))
        assert (node.parent_keys, node.group_name, bool(node.description)) == (
            {outbox},
            "harvest",
            True,
        )


def test_two_outboxes_of_one_topic() -> None:
    """They load together; the topic is one asset, behind both of them."""
    both = dg.Definitions.merge(
        harvest_definitions(key="first", topics=["shared", "own"]),
        harvest_definitions(key="second", topics=["shared"]),
    )
    dg.Definitions.validate_loadable(both)
    graph = both.resolve_asset_graph()
    first, second = (dg.AssetKey([key, "outbox"]) for key in ("first", "second"))
    assert graph.get(dg.AssetKey(["kafka", "shared"])).parent_keys == {first, second}
    assert graph.get(dg.AssetKey(["kafka", "own"])).parent_keys == {first}


@pytest.mark.parametrize(
    ("harvest", "key", "says"),
    [
        (HarvestResource(delivery="twice"), "harvest", "delivery"),
        (HarvestResource(drain_timeout="soon"), "harvest", "drain_timeout"),
        (HarvestResource(neli=NeliResource(shards=0)), "harvest", "shards"),
        (
            HarvestResource(kafka=KafkaResource(settings={"secuirty.protocol": "SSL"})),
            "harvest",
            "secuirty.protocol",
        ),
        (
            HarvestResource(kafka=KafkaResource(producer_settings={"batch.num.messages": "many"})),
            "harvest",
            "batch.num.messages",
        ),
        (HarvestResource(), "my-key", "my-key"),
    ],
)
def test_what_is_wrong_is_refused_at_load(harvest: HarvestResource, key: str, says: str) -> None:
    """The error names the field."""
    with pytest.raises(ConfigError, match=says):
        harvest_definitions(harvest, key=key)
