"""The component: what a `defs.yaml` makes, and what it is told when it is wrong."""

from __future__ import annotations

import importlib
import sys
import tomllib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import dagster as dg
import pytest
import yaml
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster.components.core.package_entry import (
    DG_PLUGIN_ENTRY_POINT_GROUP,
    get_package_objects_in_module,
)
from pydantic.fields import FieldInfo

from harvest_dagster.orchestration import OutboxComponent
from harvest_dagster.orchestration.fields import FIELDS
from tests.support.paths import ROOT

pytestmark = pytest.mark.filterwarnings(  # Dagster's own, about how Dagster's own code uses it
    "ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning",
    "ignore::dagster_shared.utils.warnings.BetaWarning",
)
TYPE = "harvest_dagster.orchestration.OutboxComponent"
ATTRIBUTES = {
    "key": "shop",
    "table": "shop.outbox",
    "postgres": "{{ env.SHOP_POSTGRES }}",
    "kafka": {
        "bootstrap_servers": "broker:9092",
        "settings": {"sasl.password": "{{ env('KAFKA_PASSWORD') }}", "linger.ms": 5},
        "producer_settings": {"enable.idempotence": True},
    },
    "name": "the shop",
    "leader_topic": "shop-leaders",
    "leader_group": "shop-candidates",
    "heartbeat_timeout": "8s",
    "marks": "rows",
    "max_in_flight_records": 500,
    "shards": 2,
    "delivery": "at_least_once",
    "on_rejected": "skip",
    "retention": "24h",
    "drain_timeout": "5s",
    "topics": ["orders"],
    "upstream": ["shop/orders"],
    "running": True,
}

Load = Callable[..., dg.Definitions]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load a project whose only `defs.yaml` is of our type."""
    project = f"project_{uuid.uuid4().hex[:8]}"
    folder = tmp_path / project / "defs" / "outbox"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{project}"\n'
    )

    def make(**attributes: Any) -> dg.Definitions:
        text = yaml.safe_dump({"type": TYPE, "attributes": attributes})
        (folder / "defs.yaml").write_text(text)
        return dg.load_from_defs_folder(path_within_project=tmp_path)

    return make


def test_it_makes_all_of_a_harvest(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `defs.yaml` makes the assets, checks, sensor and jobs of a harvest, and its resource."""
    monkeypatch.setenv("SHOP_POSTGRES", "postgresql://me:hush@here/shop")
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    repository = load(**ATTRIBUTES).get_repository_def()
    graph = repository.asset_graph
    assert dg.AssetKey(["shop", "outbox"]) in graph.get_all_asset_keys()
    assert dg.AssetKey(["kafka", "orders"]) in graph.get_all_asset_keys()
    assert dg.AssetKey(["shop", "orders"]) in graph.get(dg.AssetKey(["shop", "outbox"])).parent_keys
    assert graph.asset_check_keys
    (sensor,) = repository.sensor_defs
    assert (sensor.name, sensor.default_status.value) == ("shop_leader", "RUNNING")
    jobs = {job.name for job in repository.get_all_jobs()}
    assert "shop_tour" in jobs


def test_its_resource_has_what_is_given(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attribute arrives at the harvest's config, variables of the environment by value."""
    monkeypatch.setenv("SHOP_POSTGRES", "postgresql://me:hush@here/shop")
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    harvest: Any = (load(**ATTRIBUTES).resources or {})["shop"]
    with harvest.process_config_and_initialize_cm() as resource:
        config = resource.config()
    assert config.base_kafka == {
        "bootstrap.servers": "broker:9092",
        "sasl.password": "hush",
        "linger.ms": "5",
    }
    assert config.producer_kafka == {"enable.idempotence": "true"}
    assert "hush" in config.postgres.get_secret_value()
    assert (config.outbox, config.name, config.leader_topic, config.shards) == (
        "shop.outbox",
        "the shop",
        "shop-leaders",
        2,
    )
    assert (config.delivery, config.on_rejected, config.retention) == (
        "at_least_once",
        "skip",
        86_400.0,
    )
    assert (config.leader_group, config.marks) == ("shop-candidates", "rows")
    limits = config.limits
    assert (limits.drain_timeout, limits.heartbeat_timeout) == (5.0, 8.0)
    assert limits.max_in_flight_records == 500


def given_for(field: FieldInfo) -> Any:
    """A value that is not the field's default."""
    choices = get_args(field.annotation)
    if get_origin(field.annotation) is Literal:
        return next(choice for choice in choices if choice != field.default)
    return 7 if int in (field.annotation, *choices) else "7s"


def test_each_field_of_a_config_arrives(load: Load) -> None:
    """What a `defs.yaml` gives for any field is what the harvest's config has."""
    given = {name: given_for(field) for name, field in FIELDS.items()}
    places = {"postgres": "postgresql://here", "kafka": {"bootstrap_servers": "broker:9092"}}
    harvest: Any = (load(key="shop", **places, **given).resources or {})["shop"]
    with harvest.process_config_and_initialize_cm() as resource:
        config = resource.config()
    found = {name: getattr(config, name, getattr(config.limits, name, None)) for name in FIELDS}
    seconds = {name for name, value in found.items() if isinstance(value, float)}
    assert {"retention", "drain_timeout"} <= seconds
    assert found == {**given, **dict.fromkeys(seconds, 7.0)}


def test_no_value_of_the_environment_is_in_the_definitions(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The UI shows a resource's config: it has the variable's name, and not its value."""
    monkeypatch.setenv("SHOP_POSTGRES", "postgresql://me:hush@here/shop")
    monkeypatch.setenv("KAFKA_PASSWORD", "hush")
    shown = str(RepositorySnap.from_def(load(**ATTRIBUTES).get_repository_def()))
    assert "SHOP_POSTGRES" in shown
    assert "hush" not in shown


def test_nothing_need_be_given(load: Load) -> None:
    """Without attributes it is the harvest that the settings name, and its sensor is off."""
    repository = load().get_repository_def()
    (sensor,) = repository.sensor_defs
    assert (sensor.name, sensor.default_status.value) == ("harvest_leader", "STOPPED")


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"key": "my shop"}, "can't be a harvest's key"),
        ({"table": "a b"}, "is no table name"),
        ({"drain_timeout": "10"}, "drain_timeout: it lacks its unit"),
        ({"shards": 0}, "shards: "),
        ({"delivery": "twice"}, "exactly_once"),
        ({"tabel": "outbox"}, "tabel"),
        ({"postgres": "{{ env.NOT_SET_ANYWHERE }}"}, "NOT_SET_ANYWHERE"),
    ],
)
def test_what_is_wrong_is_told_when_it_is_loaded(
    load: Load, attributes: dict[str, Any], said: str
) -> None:
    """A wrong attribute is named at load, and not when the sensor first ticks."""
    with pytest.raises(Exception) as refused:  # noqa: PT011 - whichever Dagster wraps it in
        load(**attributes)
    said_by: list[str] = []
    error: BaseException | None = refused.value
    while error is not None:
        said_by.append(str(error))
        error = error.__cause__
    assert said in " ".join(said_by)


def test_dg_finds_it() -> None:
    """The entry point of the wheel leads `dg list components` to the type."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (module,) = project["entry-points"][DG_PLUGIN_ENTRY_POINT_GROUP].values()
    found = dict(get_package_objects_in_module(importlib.import_module(module)))
    assert found == {"OutboxComponent": OutboxComponent}
    assert sys.modules[module].OutboxComponent is OutboxComponent


def test_two_components_of_one_topic(load: Load, tmp_path: Path) -> None:
    """Two files whose outboxes publish to one topic load together."""
    load(key="first", topics=["both"])
    (first,) = tmp_path.glob("project_*/defs/outbox")
    other = first.parent / "other"
    other.mkdir()
    text = yaml.safe_dump({"type": TYPE, "attributes": {"key": "second", "topics": ["both"]}})
    (other / "defs.yaml").write_text(text)
    graph = load(key="first", topics=["both"]).resolve_asset_graph()
    parents = {dg.AssetKey([key, "outbox"]) for key in ("first", "second")}
    assert graph.get(dg.AssetKey(["kafka", "both"])).parent_keys == parents
