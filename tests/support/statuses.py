"""Statuses of a harvest, made up for the tests of what is said about them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import InFlight, ParkedCount, Seen
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.outbox.parked import Parked
from harvest_dagster.work.described import judged
from harvest_dagster.work.room import Verdict
from harvest_dagster.work.tours import TourRow

ID = UUID(int=7)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lease(**of: Any) -> LeaseRow:
    """A lease that holds."""
    return replace(LeaseRow("o", "outbox", 0, 7, ID, "us", AT, False, 60.0, 0.5, 5.0, False), **of)


def tour(**of: Any) -> TourRow:
    """A tour that is alive."""
    figures = {"marked": 9, "published": 9, "purged": 9, "remarked": 0, "parked": 0, "in_flight": 3}
    sound = TourRow("o", 0, ID, 7, "run-1", 9, 100, figures, {}, {}, False, 720.0, 0.2, ended=False)
    return replace(sound, **of)


def record(number: int) -> Parked:
    """A record that is set aside."""
    return Parked(
        number,
        0,
        AT,
        "orders",
        b"a",
        None,
        4,
        [],
        [],
        None,
        "too large",
        1,
        AT,
        None,
        holds_key=True,
    )


def event(number: int, kind: str, **detail: Any) -> Event:
    """Something that happened."""
    return Event(number, AT, "o", 0, 7, ID, kind, detail)


def status(**of: Any) -> Seen:
    """A harvest that does well."""
    sound = Seen(
        "o",
        [lease()],
        [tour()],
        [],
        [],
        "outbox",
        Backlog(0, 0.0, exact=True),
        InFlight(0, 0, None),
        ParkedCount(0, 0, {}),
        {},
        [],
    )
    return replace(sound, **of)


def harvesting(shards: int = 1) -> Harvesting:
    """A harvest that needs no servers."""
    settings = {"base_kafka": {"bootstrap.servers": "a:1"}, "postgres": "host=a", "shards": shards}
    return Harvesting(HarvestConfig.model_validate(settings))


def verdicts(of: Seen, shards: int = 1, still_seconds: float = 0.0) -> list[Verdict]:
    """What is judged of a harvest."""
    return [*judged(ROOM, harvesting(shards), of, still_seconds)]
