"""Who leads, as the first thing that is said of what is led."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.text import ages
from harvest_dagster.work.status import WorkStatus
from harvest_dagster.work.tours import TourRow


@dataclass(frozen=True, slots=True)
class Leaders:
    """Who leads, for people, and what of that is compared from tick to tick."""

    metadata: Mapping[str, dg.MetadataValue | str]
    which: str


def leaders(status: WorkStatus) -> Leaders:
    """Return who leads, under which epoch, and the runs of the tours."""
    tours = {tour.shard: tour for tour in status.tours if tour.alive}
    led = [row for row in status.leases if not row.expired]
    said = [_leader(row, tours.get(row.shard), several=len(led) > 1) for row in led]
    runs = {
        "tour" if len(led) == 1 else f"tour {shard}": dg.MetadataValue.dagster_run(tour.run)
        for shard, tour in tours.items()
    }
    which = [f"{row.holder} {row.epoch}" for row in led] + [tour.run for tour in tours.values()]
    return Leaders({"led by": "; ".join(said) or "nobody", **runs}, " ".join(which))


def _leader(row: LeaseRow, tour: TourRow | None, *, several: bool) -> str:
    shard = f"shard {row.shard}: " if several else ""
    seen = f", tour seen {ages(tour.seen_seconds)} ago" if tour else ", no tour runs"
    return f"{shard}{row.holder}, epoch {row.epoch}, since {ages(row.acquired_seconds)}{seen}"
