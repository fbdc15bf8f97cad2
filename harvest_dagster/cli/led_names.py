"""`harvest <word> list`: the names that are led as a word, and who leads each."""

from __future__ import annotations

from dataclasses import asdict

import click

from harvest_dagster.cli.shared_options import connected, json_option, postgres_option
from harvest_dagster.cli.show import print_json, print_table, say
from harvest_dagster.config import load_settings
from harvest_dagster.ledger.words import LedName, names

_NOBODY = "nobody"


def list_of(word: str) -> click.Command:
    """Make the command that lists what is led as a word."""

    @json_option
    @postgres_option
    def act(*, as_json: bool, postgres: str | None) -> None:
        with connected(load_settings(postgres=postgres)) as connection:
            found = names(connection, word)
        if as_json:
            print_json([asdict(name) for name in found])
        elif found:
            print_table((word, "shards", "leader", "epoch", "renewed"), [*map(_cells, found)])
        else:
            say(f"no {word} has been led in this database yet")

    short = f"Show each {word}, and who leads it."
    said = f"Show each {word} that has been led in this database, and who leads it now."
    return click.command("list", short_help=short, help=said)(act)


def _cells(found: LedName) -> tuple[object, ...]:
    leaders = dict.fromkeys(leader or _NOBODY for leader in found.leaders)
    epochs = map(str, found.epochs)
    renewed = f"{found.renewed_seconds:,.1f} s ago"
    return (found.name, found.shards, ", ".join(leaders), ", ".join(epochs), renewed)
