"""The harvest: mark, publish, purge, and the tour that runs them."""

from harvest_dagster.harvest.backlog_metrics import HarvestCollector
from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.leader_events import (
    LeaderAcquired,
    LeaderFenced,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
    Stats,
)
from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml
from harvest_dagster.harvest.tour import Totals, Tour

__all__ = [
    "Harvest",
    "HarvestCollector",
    "HarvestConfig",
    "LeaderAcquired",
    "LeaderFenced",
    "LeaderRefreshed",
    "LeaderRevoked",
    "Limits",
    "MeterRead",
    "Stats",
    "Totals",
    "Tour",
    "load_reaper_yaml",
    "settle_heap",
]
