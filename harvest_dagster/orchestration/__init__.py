"""Dagster: resources, a sensor that leads, ops that harvest, and storage for its instance."""

from harvest_dagster.orchestration.component import OutboxComponent
from harvest_dagster.orchestration.definitions import harvest_definitions
from harvest_dagster.orchestration.resources import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.stashing import Repeat, stash_key, stash_report

__all__ = [
    "HarvestResource",
    "KafkaResource",
    "NeliResource",
    "OutboxComponent",
    "OutboxResource",
    "Repeat",
    "harvest_definitions",
    "stash_key",
    "stash_report",
]
