"""A field of a config is wherever a harvest is configured, and has one name there."""

from __future__ import annotations

from typing import get_args

import pytest

from harvest_dagster.harvest.config import Delivery, HarvestConfig, Limits
from harvest_dagster.harvest.reaper_yaml import NAMES
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxComponent,
    OutboxResource,
)
from harvest_dagster.orchestration.component import KafkaAttributes
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "config.md"
MODELS = (HarvestConfig, Limits)
DESCRIBED = {name: field for model in MODELS for name, field in model.model_fields.items()}
IN_DAGSTER = DESCRIBED.keys() - {"limits", "metrics"}
"""Limits stand by themselves there; `harvest reap` alone serves figures."""
PLACES = {
    "postgres": "postgres",
    "outbox": "table",
    "base_kafka": "settings",
    "producer_kafka": "producer_settings",
}
RESOURCES = (HarvestResource, NeliResource, OutboxResource, KafkaResource)


@pytest.mark.parametrize("field", DESCRIBED)
def test_it_is_a_key_of_a_file_and_in_the_reference(field: str) -> None:
    """Each field is read from a reaper.yaml, and the page has it with its key and description."""
    key = NAMES[field].removeprefix("harvest.")
    (row,) = (line for line in PAGE.read_text().splitlines() if f"`{field}` | `{key}`" in line)
    assert str(DESCRIBED[field].description).replace("<", "&lt;") in row


@pytest.mark.parametrize("field", sorted(IN_DAGSTER))
def test_it_is_in_one_resource_and_in_the_component(field: str) -> None:
    """Each field is in the resource or in one of its parts, and an attribute of the component."""
    name = PLACES.get(field, field)
    (resource,) = (resource for resource in RESOURCES if name in resource.model_fields)
    attributes = {**OutboxComponent.model().model_fields, **KafkaAttributes.model().model_fields}
    assert attributes[name].description == resource.model_fields[name].description
    if field not in PLACES:
        assert attributes[name].description == DESCRIBED[field].description


@pytest.mark.parametrize("delivery", get_args(Delivery))
def test_what_is_left_out_is_as_in_a_config(delivery: Delivery) -> None:
    """The defaults are the config's, but for the drain, which an operator's job waits for."""
    made = HarvestResource(
        outbox=OutboxResource(postgres="postgresql://here", table="shop"),
        kafka=KafkaResource(bootstrap_servers="broker:9092"),
        delivery=delivery,
    )
    assert made.config() == HarvestConfig.model_validate(
        {
            "outbox": "shop",
            "postgres": "postgresql://here",
            "base_kafka": {"bootstrap.servers": "broker:9092"},
            "delivery": delivery,
            "limits": {"drain_timeout": 10},
        }
    )


def test_a_name_that_is_none_is_refused() -> None:
    """A field that there is not is refused by its name, and its value is not shown."""
    for resource in (HarvestResource, NeliResource):
        with pytest.raises(ValueError, match="shard\\n") as refused:
            resource(shard="hunter2")
        assert "hunter2" not in str(refused.value)
