"""`harvest history`: what happened to an outbox."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict

import click

from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    filters,
    harvest_name,
    harvest_options,
    json_option,
    limit_option,
)
from harvest_dagster.cli.show import print_json, print_table, say
from harvest_dagster.ledger.events import Event, read
from harvest_dagster.work.room import kinds as kinds_of_events

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class _Duration(click.ParamType[str]):
    """30s, 5m, 1h or 7d."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Check it; it stays as it was written, to be named where nothing fits."""
        if not _DURATION.fullmatch(str(value)):
            self.fail(f"{value!r} is no duration: write 30s, 5m, 1h or 7d", param, ctx)
        return str(value)


@click.command()
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([*kinds_of_events()]),
    metavar="KIND",
    multiple=True,
    help="Only this kind; may be given repeatedly.",
)
@click.option("--since", type=_Duration(), help="Only this far back: 30s, 5m, 1h, 7d.")
@limit_option
@json_option
@harvest_options
def history(
    *,
    kinds: tuple[str, ...],
    since: str | None,
    limit: int,
    as_json: bool,
    name: str | None,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Show leaders, tours and records set aside, newest first."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        found = read(connection, name, kinds, _seconds(since), limit)
    narrowed = filters(kind=kinds, since=since)
    print_events(found, as_json=as_json, none=narrowed and f"no events of {name} match {narrowed}")


def print_events(events: Sequence[Event], *, as_json: bool, none: str = "") -> None:
    """Print events, for people or for scripts."""
    if as_json:
        print_json([asdict(event) for event in events])
    elif events:
        head = ("at", "kind", "shard", "epoch", "detail")
        print_table(head, [_cells(event) for event in events])
    else:
        say(none or "nothing has happened yet")


def _seconds(duration: str | None) -> float | None:
    return float(duration[:-1]) * _UNITS[duration[-1]] if duration else None


def _cells(event: Event) -> tuple[object, ...]:
    detail = ", ".join(f"{key} {_plain(value)}" for key, value in event.detail.items())
    epoch = "-" if event.epoch is None else event.epoch
    at = event.at.astimezone().isoformat(" ", "milliseconds")
    return (at, event.kind, event.shard, epoch, detail)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
