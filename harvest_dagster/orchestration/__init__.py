"""Dagster: resources, a sensor that leads, ops that harvest, and storage for its instance."""

from harvest_dagster.orchestration.component import OutboxComponent
from harvest_dagster.orchestration.definitions import harvest_definitions
from harvest_dagster.orchestration.resources import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)

__all__ = [
    "HarvestResource",
    "KafkaResource",
    "NeliResource",
    "OutboxComponent",
    "OutboxResource",
    "harvest_definitions",
]
