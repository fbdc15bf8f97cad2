"""`harvest status`: how an outbox's harvest does, from PostgreSQL alone."""

from __future__ import annotations

from dataclasses import asdict

import click

from harvest_dagster.cli.history import print_events
from harvest_dagster.cli.options import (
    chosen,
    connected,
    harvest_name,
    json_option,
    name_option,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table
from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.status import InFlight, ParkedCount, Status, read_held, read_status
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.text import counted, printable

_EVENTS = 5
_REASONS = 5


@click.command(short_help="Show who leads, what waits, and what happened last.")
@json_option
@name_option
@outbox_option
@postgres_option
def status(*, as_json: bool, name: str | None, outbox: str | None, postgres: str | None) -> None:
    """Show who leads, what waits, is in flight, set aside or held, and what happened last."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        found = read_status(connection, place.table, name, events=_EVENTS)
        held = read_held(connection, found.name)
    if as_json:
        print_json({**asdict(found), "held": held})
    else:
        _print(found, held)


def _print(found: Status, held: dict[str, str]) -> None:
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
            *(("held", f"{printable(topic)}: {printable(why)}") for topic, why in held.items()),
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
    return f"{about}{counted(backlog.records, 'record')}{_oldest(backlog.oldest_seconds)}"


def _flight(flight: InFlight) -> str:
    batches = counted(flight.batches, "batch", "batches")
    return f"{counted(flight.records, 'record')} in {batches}{_oldest(flight.oldest_seconds)}"


def _parked(parked: ParkedCount) -> str:
    records = counted(parked.records, "record")
    return (
        f"{'' if parked.exact else 'at least '}{records}, {counted(parked.held_keys, 'key')} held"
    )


def _oldest(seconds: float | None) -> str:
    return f", the oldest {seconds:,.1f} s" if seconds else ""
