"""`harvest lease`: who leads, who led, and how to make room for another."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Any

import click
import psycopg

from harvest_dagster.cli.history import name_option, print_events
from harvest_dagster.cli.options import chosen, connected, json_option, postgres_option
from harvest_dagster.cli.show import print_json, print_table
from harvest_dagster.election import history as events
from harvest_dagster.election import lease as leases
from harvest_dagster.election.lease import LeaseRow
from harvest_dagster.errors import HarvestStateError

_KINDS = ("acquired", "refreshed", "revoked", "fenced")
_RESIGN_SECONDS = 15.0
_POLL_SECONDS = 0.2


@click.group()
def lease() -> None:
    """Who leads, who led, and how to make room for another."""


@lease.command()
@json_option
@name_option
@postgres_option
def show(*, as_json: bool, name: str | None, postgres: str | None) -> None:
    """Show who leads each shard, under which epoch, and for how long."""
    settings, place = chosen(postgres, None)
    with connected(settings) as connection:
        rows = leases.read(connection, name or str(place.table))
    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        head = ("shard", "epoch", "holder", "acquired", "renewed", "lease")
        print_table(head, [_cells(row) for row in rows])
    else:
        click.echo(f"nobody has led {name or place.table} yet")


@lease.command()
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1))
@json_option
@name_option
@postgres_option
def history(*, limit: int, as_json: bool, name: str | None, postgres: str | None) -> None:
    """Show who led, and how each term began and ended, newest first."""
    settings, place = chosen(postgres, None)
    with connected(settings) as connection:
        found = events.read(connection, name or str(place.table), _KINDS, limit=limit)
    print_events(found, as_json=as_json)


@lease.command()
@click.option("--shard", type=click.IntRange(0), help="One shard [default: all]")
@name_option
@postgres_option
def resign(*, shard: int | None, name: str | None, postgres: str | None) -> None:
    """Ask the leader to finish, hand over, and stand again as the last in line.

    Exit code 1 if nobody has taken over after 15 s.
    """
    settings, place = chosen(postgres, None)
    with connected(settings) as connection:
        before = _ask(connection, name or str(place.table), shard)
        after = _wait(connection, before)
    for old in before:
        click.echo(_outcome(old, after.get(old.shard)))
    if len(after) < len(before):
        sys.exit(1)


def _ask(connection: psycopg.Connection[Any], name: str, shard: int | None) -> list[LeaseRow]:
    rows = [row for row in leases.read(connection, name) if shard in {None, row.shard}]
    if not rows:
        what = name if shard is None else f"shard {shard} of {name}"
        raise HarvestStateError(f"nobody has led {what} yet: see `harvest lease show`")
    for row in rows:
        leases.ask_to_resign(connection, row.name, row.shard)
    connection.commit()
    return rows


def _wait(connection: psycopg.Connection[Any], before: list[LeaseRow]) -> dict[int, LeaseRow]:
    """Wait until each shard is acquired anew, within a bound; tell the new leases by shard."""
    since = {row.shard: row.acquired_at for row in before}
    deadline = time.monotonic() + _RESIGN_SECONDS
    while True:
        rows = leases.read(connection, before[0].name)
        connection.commit()
        after = {
            row.shard: row
            for row in rows
            if row.acquired_at > since.get(row.shard, row.acquired_at)
        }
        if len(after) == len(before) or time.monotonic() > deadline:
            return after
        time.sleep(_POLL_SECONDS)


def _outcome(old: LeaseRow, new: LeaseRow | None) -> str:
    if new is None:
        return f"shard {old.shard}: nobody has taken over from {old.holder}; {_end(old)} when asked"
    if new.holder == old.holder:
        return f"shard {old.shard}: {new.holder} leads again, epoch {new.epoch}: no other stands"
    return f"shard {old.shard}: {new.holder} leads now, epoch {new.epoch}, after {old.holder}"


def _cells(row: LeaseRow) -> tuple[object, ...]:
    return (
        row.shard,
        row.epoch,
        row.holder,
        f"{row.acquired_seconds:,.0f} s ago",
        f"{row.renewed_seconds:,.1f} s ago",
        _end(row) + (", asked to resign" if row.resign else ""),
    )


def _end(row: LeaseRow) -> str:
    if row.expired:
        return f"expired {-row.expires_in_seconds:,.0f} s ago"
    return f"good for {row.expires_in_seconds:,.1f} s"
