"""Dagster: resources, a sensor that leads, ops that work, and storage for its instance."""

from harvest_dagster.orchestration.assets import harvest_assets
from harvest_dagster.orchestration.checks import harvest_checks
from harvest_dagster.orchestration.component import OutboxComponent
from harvest_dagster.orchestration.definitions import harvest_definitions, led_definitions
from harvest_dagster.orchestration.led_resource import led_resource
from harvest_dagster.orchestration.operate import operator_jobs
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.resources import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.sensor import leader_sensor
from harvest_dagster.orchestration.stashing import Repeat, stash_key, stash_report
from harvest_dagster.orchestration.tour_job import tour_job
from harvest_dagster.orchestration.translator import HarvestTranslator

__all__ = [
    "HarvestResource",
    "HarvestTranslator",
    "KafkaResource",
    "Names",
    "NeliResource",
    "OutboxComponent",
    "OutboxResource",
    "Repeat",
    "harvest_assets",
    "harvest_checks",
    "harvest_definitions",
    "leader_sensor",
    "led_definitions",
    "led_resource",
    "operator_jobs",
    "stash_key",
    "stash_report",
    "tour_job",
]
