"""How an outbox's harvest does at one moment, from PostgreSQL alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import psycopg
from psycopg.rows import class_row

from harvest_dagster.harvest.meter import Backlog, read_backlog, read_topics
from harvest_dagster.outbox.parked import COUNTED, Choice, Parked, held_keys, read, reasons
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.work.status import WorkStatus, read_work_status

ASIDE = 50
"""So many of the records that are set aside are shown."""
_SQL = statements("harvest_dagster.harvest", "status.sql")


@dataclass(frozen=True, slots=True)
class InFlight:
    """What is marked, and not purged yet."""

    batches: int
    records: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class ParkedCount:
    """What is set aside; unless `exact`, there is more."""

    records: int
    held_keys: int
    reasons: dict[str, int]
    exact: bool = True

    def __str__(self) -> str:
        """How many records, for a line of text."""
        return f"{self.records:,}" if self.exact else f"at least {self.records:,}"


@dataclass(frozen=True, slots=True)
class Status(WorkStatus):
    """A harvest at one moment, as its tables have it."""

    outbox: str
    backlog: Backlog
    in_flight: InFlight
    parked: ParkedCount


@dataclass(frozen=True, slots=True)
class Seen(Status):
    """The same, with what a page has room for: what waits for which topic, and what is set aside.

    `topics` is of the first records that wait, `aside` has the first that are set aside.
    """

    topics: dict[str, int]
    aside: list[Parked]


def read_seen(connection: psycopg.Connection[Any], table: TableName, name: str) -> Seen:
    """Read it, without events."""
    status = read_status(connection, table, name, events=0)
    topics = read_topics(connection, table) if status.backlog.records else {}
    aside = read(connection, Choice(name), limit=ASIDE) if status.parked.records else []
    known = {field.name: getattr(status, field.name) for field in fields(status)}
    return Seen(**known, topics=topics, aside=aside)


def read_status(
    connection: psycopg.Connection[Any], table: TableName, name: str, *, events: int
) -> Status:
    """Read it, with so many of the last events."""
    Shape.read(table, connection.execute(CATALOGUE["columns"].text, (table.sql,)))
    work = read_work_status(connection, name, last_events=events)
    return Status(
        work.name,
        work.leases,
        work.tours,
        work.events,
        work.candidates,
        str(table),
        read_backlog(connection, table),
        _in_flight(connection, name),
        _parked(connection, name),
    )


def read_held(connection: psycopg.Connection[Any], name: str) -> dict[str, str]:
    """Return the topics that can't be published to just now, each with the reason."""
    return dict(connection.execute(_SQL["held"].text, {"name": name}).fetchall())


def _parked(connection: psycopg.Connection[Any], name: str) -> ParkedCount:
    counts = reasons(connection, name)
    records = sum(counts.values())
    return ParkedCount(records, held_keys(connection, name), counts, exact=records < COUNTED)


def _in_flight(connection: psycopg.Connection[Any], name: str) -> InFlight:
    with connection.cursor(row_factory=class_row(InFlight)) as cursor:
        found = cursor.execute(_SQL["in_flight"].text, {"name": name}).fetchone()
    return found or InFlight(0, 0, None)
