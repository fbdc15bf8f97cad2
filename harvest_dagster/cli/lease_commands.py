"""`harvest lease`: who leads, who led, and how to make room for another."""

from __future__ import annotations

from dataclasses import asdict

import click

from harvest_dagster.cli.history import print_events
from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    harvest_name,
    json_option,
    limit_option,
    name_option,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table, say
from harvest_dagster.election.resign import end_of
from harvest_dagster.ledger import events
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.work.verbs import Resign, resigned


@click.group()
def lease() -> None:
    """Who leads, who led, and how to make room for another."""


@lease.command()
@json_option
@name_option
@outbox_option
@postgres_option
def show(*, as_json: bool, name: str | None, outbox: str | None, postgres: str | None) -> None:
    """Show who leads each shard, under which epoch, and for how long."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        rows = leases.read(connection, name)
    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        head = ("shard", "epoch", "holder", "acquired", "renewed", "lease")
        print_table(head, [_cells(row) for row in rows])
    else:
        say(f"nobody has led {name} yet")


@lease.command()
@limit_option
@json_option
@name_option
@outbox_option
@postgres_option
def history(
    *, limit: int, as_json: bool, name: str | None, outbox: str | None, postgres: str | None
) -> None:
    """Show who led, and how each term began and ended, newest first."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        found = events.read(connection, name, [*events.KINDS], limit=limit)
    print_events(found, as_json=as_json)


@lease.command(short_help="Ask the leader to finish, hand over, and stand again.")
@click.option("--shard", type=click.IntRange(0), help="One shard [default: all]")
@name_option
@outbox_option
@postgres_option
def resign(
    *, shard: int | None, name: str | None, outbox: str | None, postgres: str | None
) -> None:
    """Ask the leader to finish, hand over, and stand again as the last in line.

    Exit code 1 if nobody has taken over after 15 s.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        did = resigned(connection, harvest_name(connection, name, place), Resign(shard=shard))
    for line in did.lines:
        say(line)


def _cells(row: LeaseRow) -> tuple[object, ...]:
    return (
        row.shard,
        row.epoch,
        row.holder,
        f"{row.acquired_seconds:,.0f} s ago",
        f"{row.renewed_seconds:,.1f} s ago",
        end_of(row) + (", asked to resign" if row.resign else ""),
    )
