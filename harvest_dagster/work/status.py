"""How whatever is led does at one moment, from PostgreSQL alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.ledger import candidates, events, lease
from harvest_dagster.ledger.candidates import CandidateRow
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.work import tours
from harvest_dagster.work.tours import TourRow


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """Who leads, what works in processes of their own say, and what happened last."""

    name: str
    leases: list[LeaseRow]
    tours: list[TourRow]
    events: list[Event]
    candidates: list[CandidateRow]

    @property
    def done(self) -> int:
        """What all tours have done, ever."""
        return sum(tour.done_before + tour.done for tour in self.tours)


def read_work_status(
    connection: psycopg.Connection[Any], name: str, *, last_events: int
) -> WorkStatus:
    """Read it, with so many of the last events."""
    return WorkStatus(
        name,
        lease.read(connection, name),
        tours.read(connection, name),
        events.read(connection, name, limit=last_events),
        candidates.read(connection, name),
    )
