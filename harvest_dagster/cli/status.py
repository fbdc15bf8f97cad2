"""`harvest status`: how an outbox's harvest does, from PostgreSQL alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import click
import psycopg
from psycopg.rows import class_row

from harvest_dagster.cli.history import name_option, print_events
from harvest_dagster.cli.options import (
    chosen,
    connected,
    json_option,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table
from harvest_dagster.election import history, lease
from harvest_dagster.election.history import Event
from harvest_dagster.election.lease import LeaseRow
from harvest_dagster.harvest.meter import Backlog, read_backlog
from harvest_dagster.outbox.parked import held_keys, reasons
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.cli", "status.sql")
_EVENTS = 5
_REASONS = 5


@dataclass(frozen=True, slots=True)
class InFlight:
    """What is marked, and not purged yet."""

    batches: int
    records: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Parked:
    """What is set aside."""

    records: int
    held_keys: int
    reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class Status:
    """A harvest at one moment, as its tables have it."""

    name: str
    outbox: str
    leases: list[LeaseRow]
    backlog: Backlog
    in_flight: InFlight
    parked: Parked
    events: list[Event]


@click.command()
@json_option
@name_option
@outbox_option
@postgres_option
def status(*, as_json: bool, name: str | None, outbox: str | None, postgres: str | None) -> None:
    """Show who leads, what waits, what is in flight, what is set aside, and what happened last."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        found = _read(connection, place.table, name or str(place.table))
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)


def _read(connection: psycopg.Connection[Any], table: TableName, name: str) -> Status:
    Shape.read(table, connection.execute(CATALOGUE["columns"].text, (table.sql,)))
    counts = reasons(connection, name)
    return Status(
        name,
        str(table),
        lease.read(connection, name),
        read_backlog(connection, table),
        _in_flight(connection, name),
        Parked(sum(counts.values()), held_keys(connection, name), counts),
        history.read(connection, name, limit=_EVENTS),
    )


def _in_flight(connection: psycopg.Connection[Any], name: str) -> InFlight:
    with connection.cursor(row_factory=class_row(InFlight)) as cursor:
        found = cursor.execute(_SQL["in_flight"].text, {"name": name}).fetchone()
    return found or InFlight(0, 0, None)


def _print(found: Status) -> None:
    print_table(
        ("harvest", found.name),
        [
            ("outbox", found.outbox),
            *((f"shard {row.shard}", _lease(row)) for row in found.leases or ()),
            *(() if found.leases else (("leader", "nobody has led yet"),)),
            ("backlog", _backlog(found.backlog)),
            ("in flight", _flight(found.in_flight)),
            ("parked", _parked(found.parked)),
            *(("", f"{n:,}: {reason}") for reason, n in [*found.parked.reasons.items()][:_REASONS]),
        ],
    )
    click.echo()
    print_events(found.events, as_json=False)


def _lease(row: LeaseRow) -> str:
    left = row.expires_in_seconds
    end = f"expired {-left:,.0f} s ago" if row.expired else f"good for {left:,.1f} s"
    asked = ", asked to resign" if row.resign else ""
    return f"epoch {row.epoch}, {end}{asked}, {row.holder}"


def _backlog(backlog: Backlog) -> str:
    about = "" if backlog.exact else "about "
    return f"{about}{backlog.records:,} records{_oldest(backlog.oldest_seconds)}"


def _flight(flight: InFlight) -> str:
    return (
        f"{flight.records:,} records in {flight.batches:,} batches{_oldest(flight.oldest_seconds)}"
    )


def _parked(parked: Parked) -> str:
    return f"{parked.records:,} records, {parked.held_keys:,} keys held"


def _oldest(seconds: float | None) -> str:
    return f", the oldest {seconds:,.1f} s" if seconds else ""
