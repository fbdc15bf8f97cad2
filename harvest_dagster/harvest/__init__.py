"""The harvest: mark, publish, purge, and the tour that runs them."""

from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.events import (
    LeaderAcquired,
    LeaderFenced,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
    Stats,
)
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.tour import Totals, Tour

__all__ = [
    "Harvest",
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
]
