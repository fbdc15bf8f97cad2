"""`harvest status`: how whatever is led does, from PostgreSQL alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import click
import psycopg

from harvest_dagster.cli.history import print_events
from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    harvest_name,
    json_option,
    name_option,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table
from harvest_dagster.election.resign import end_of
from harvest_dagster.errors import OutboxError
from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.status import InFlight, ParkedCount, Status, read_held, read_status
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.candidates import CandidateRow
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.ledger.words import OUTBOX, refuse_another
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.text import ages, counted, printable
from harvest_dagster.work import tours
from harvest_dagster.work.status import WorkStatus
from harvest_dagster.work.tours import TourRow

_EVENTS = 5
_REASONS = 5


class _Led(NamedTuple):
    """A shard of whatever is led, and what works for it in a process of its own, if anything."""

    lease: LeaseRow
    tour: TourRow | None


@click.command(short_help="Show who leads, what waits, and what happened last.")
@json_option
@name_option
@outbox_option
@postgres_option
def status(*, as_json: bool, name: str | None, outbox: str | None, postgres: str | None) -> None:
    """Show who leads, what waits, is in flight, set aside or held, and what happened last.

    That is of one outbox. Where neither --name nor --outbox is given, whatever else is led in this
    database follows, a line each.
    """
    settings, place = chosen(postgres, outbox)
    found, others = None, list[_Led]()
    with connected(settings) as connection:
        if name is None and outbox is None:
            others = _others(connection, str(place.table))
        try:
            found = _read(connection, name, place)
        except OutboxError:
            if not others:
                raise
    if as_json:
        print_json({**(_as_dict(*found) if found else {}), "others": _others_as_json(others)})
        return
    if found:
        _print(*found)
    if others:
        _print_others(others, after=found is not None)


@click.command("status", short_help="Show who leads, what waits, and what happened last.")
@json_option
@name_option
@outbox_option
@postgres_option
def outbox_status(
    *, as_json: bool, name: str | None, outbox: str | None, postgres: str | None
) -> None:
    """Show who leads, what waits, is in flight, set aside or held, and what happened last."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        found = _read(connection, name, place)
    if as_json:
        print_json(_as_dict(*found))
    else:
        _print(*found)


def print_work_status(word: str, found: WorkStatus) -> None:
    """Print how anything that is led does."""
    print_table(
        (word, found.name),
        [
            *_leaders(found.leases),
            *_troubles(found.candidates),
            *((f"tour {tour.shard}", _tour(tour)) for tour in found.tours),
            *(
                ("held", f"{printable(what)}: {printable(why)}")
                for tour in found.tours
                for what, why in tour.held.items()
            ),
        ],
    )
    click.echo()
    print_events(found.events, as_json=False)


def _read(
    connection: psycopg.Connection[Any], name: str | None, place: Outbox
) -> tuple[Status, dict[str, str]]:
    name = harvest_name(connection, name, place)
    refuse_another(connection, name, OUTBOX)
    return read_status(connection, place.table, name, events=_EVENTS), read_held(connection, name)


def _as_dict(found: Status, held: dict[str, str]) -> dict[str, object]:
    return {**asdict(found), "held": held}


def _others(connection: psycopg.Connection[Any], name: str) -> list[_Led]:
    """Read all that is led under another name."""
    each = {(tour.name, tour.shard): tour for tour in tours.read(connection)}
    return [
        _Led(row, each.get((row.name, row.shard)))
        for row in leases.read(connection)
        if row.name != name
    ]


def _others_as_json(others: list[_Led]) -> list[dict[str, object]]:
    """Return what is led beside the outbox, for scripts."""
    return [
        {**asdict(lease), "tour": asdict(tour) if tour is not None else None}
        for lease, tour in others
    ]


def _print_others(others: list[_Led], *, after: bool) -> None:
    if after:
        click.echo()
    print_table(
        ("also led" if after else "led", "as", "shard", "epoch", "holder", "lease", "tour"),
        [_other(*other) for other in others],
    )


def _other(row: LeaseRow, tour: TourRow | None) -> tuple[object, ...]:
    ends, works = end_of(row), "-" if tour is None else _tour(tour)
    return (row.name, row.word, row.shard, row.epoch, row.holder, ends, works)


def _print(found: Status, held: dict[str, str]) -> None:
    print_table(
        ("harvest", found.name),
        [
            ("outbox", found.outbox),
            *_leaders(found.leases),
            *_troubles(found.candidates),
            ("backlog", _backlog(found.backlog)),
            ("in flight", _flight(found.in_flight)),
            ("parked", _parked(found.parked)),
            *(("", f"{n:,}: {reason}") for reason, n in [*found.parked.reasons.items()][:_REASONS]),
            *(("held", f"{printable(topic)}: {printable(why)}") for topic, why in held.items()),
        ],
    )
    click.echo()
    print_events(found.events, as_json=False)


def _leaders(rows: list[LeaseRow]) -> list[tuple[str, str]]:
    return [(f"shard {row.shard}", _lease(row)) for row in rows] or [
        ("leader", "nobody has led yet")
    ]


def _troubles(rows: list[CandidateRow]) -> list[tuple[str, str]]:
    return [
        ("trouble", f"{printable(trouble)} (for {ages(row.since_seconds)}, {row.holder})")
        for row in rows
        for trouble in row.troubles
    ]


def _lease(row: LeaseRow) -> str:
    asked = ", asked to resign" if row.resign else ""
    return f"epoch {row.epoch}, {end_of(row)}{asked}, {row.holder}"


def _tour(tour: TourRow) -> str:
    figures = [f"{count:,} {name.replace('_', ' ')}" for name, count in tour.figures.items()]
    seen = "ended" if tour.ended else f"seen {tour.seen_seconds:,.1f} s ago"
    return ", ".join([seen, *figures])


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
