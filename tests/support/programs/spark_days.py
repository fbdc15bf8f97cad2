"""Materialize the shop's Spark assets, a day twice: `python spark_days.py FOLDER`.

Prints, as JSON, what each materialization of `payment_feed` has stashed, and which metadata each
asset reports.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import dagster as dg

from assets import sales, tills
from harvest_dagster.orchestration import KafkaResource, OutboxResource
from resources.database import DatabaseResource
from resources.lake import Lake
from resources.shop import Shop
from resources.spark import spark

DAY = ["till_orders", "till_payments", "clean_orders", "daily_sales", "large_orders"]
SMALL = {"ops": {"tills": {"config": {"orders": 500, "customers": 20}}}}
ASSETS = [
    tills.tills,
    sales.clean_orders,
    sales.daily_sales,
    sales.large_orders,
    sales.payment_feed,
]


def main() -> None:
    """Materialize, and tell."""
    shop = Shop(database=DatabaseResource(), outbox=OutboxResource(), kafka=KafkaResource())
    resources = {"spark": spark, "lake": Lake(root=str(Path(sys.argv[1]).absolute())), "shop": shop}
    told: dict[str, Any] = {}
    feeds = []
    for _ in range(2):
        told |= _run(resources, *DAY, partition_key="2026-10-02", run_config=SMALL)
        feed = _run(resources, "payment_feed")
        feeds.append(feed["payment_feed"]["stashed"])
        told |= feed
    print(json.dumps({"feeds": feeds, "told": {k: [*v] for k, v in told.items()}}))  # noqa: T201


def _run(resources: dict[str, Any], *names: str, **how: Any) -> dict[str, dict[str, Any]]:
    done = dg.materialize(ASSETS, selection=[*names], resources=resources, **how)
    found = done.get_asset_materialization_events()
    made = [event.materialization for event in found]
    return {
        each.asset_key.to_user_string(): {k: v.value for k, v in each.metadata.items()}
        for each in made
    }


if __name__ == "__main__":
    main()
