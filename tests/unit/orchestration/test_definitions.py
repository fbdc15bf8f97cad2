"""What one call makes, and several of them in one code location."""

from __future__ import annotations

import dagster as dg
import pytest

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration import (
    HarvestResource,
    HarvestTranslator,
    KafkaResource,
    Names,
    NeliResource,
    harvest_assets,
    harvest_definitions,
    leader_sensor,
    tour_job,
)
from harvest_dagster.work.room import AssetText, CheckText

VERBS = ("create_outbox", "discard", "migrate", "remark", "requeue", "resign", "stash", "tour")


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


PARKED = dg.AssetKey(["ours", "harvest", "parked"])


class Ours(HarvestTranslator):
    """What a project may want otherwise."""

    def asset_key(self, key: str, asset: str) -> dg.AssetKey:
        """Return a key below ours."""
        return dg.AssetKey(["ours", key, asset])

    def topic_key(self, topic: str) -> dg.AssetKey:
        """Return a key of another cluster's."""
        return dg.AssetKey(["cluster", topic])

    def group_name(self, key: str) -> str:
        """Return our group."""
        return f"our_{key}"

    def owners(self, key: str, asset: AssetText) -> list[str]:
        """Return our team."""
        return [f"team:{key}-{asset.name}"]

    def kinds(self, key: str, asset: AssetText) -> set[str]:
        """Return one more kind."""
        return {*asset.kinds, key}

    def description(self, key: str, asset: AssetText) -> str:
        """Return our words."""
        return f"{asset.name} of {key}"

    def tags(self, key: str, asset: AssetText) -> dict[str, str]:
        """Return a tag."""
        return {"tier": f"{key}-{asset.name}"}

    def metadata(self, key: str, asset: AssetText) -> dict[str, object]:
        """Return a fact."""
        return {"seen": f"{asset.name} of {key}"}

    def check_description(self, key: str, check: CheckText) -> str:
        """Return our words."""
        return f"{check.name} of {key}"


def test_a_translator() -> None:
    """Each of its methods is heard, for the topics too; parents and checks follow the keys."""
    made = harvest_definitions(topics=["elsewhere"], translator=Ours())
    graph = made.resolve_asset_graph()
    topic, parked = graph.get(dg.AssetKey(["cluster", "elsewhere"])), graph.get(PARKED)
    assert topic.parent_keys == {dg.AssetKey(["ours", "harvest", "outbox"])}
    assert (topic.kinds, parked.kinds) == ({"kafka", "harvest"}, {"postgres", "harvest"})
    for node in (topic, parked):
        name = node.key.path[-1]
        assert (node.group_name, node.owners) == ("our_harvest", [f"team:harvest-{name}"])
        assert (node.description, node.tags["tier"]) == (f"{name} of harvest", f"harvest-{name}")
        assert node.metadata["seen"] == f"{name} of harvest"
    check = dg.AssetCheckKey(PARKED, "nothing_parked")
    assert graph.get_check_spec(check).description == "nothing_parked of harvest"


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
