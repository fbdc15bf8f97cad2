"""Options that several commands share, and what is made of them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from harvest_dagster.config import Settings, load_settings
from harvest_dagster.errors import HarvestStateError, OutboxError
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.words import OUTBOX
from harvest_dagster.outbox.schema import is_table
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.postgres.connect import connected as one_transaction

_Command = TypeVar("_Command", bound=Callable[..., None])


def with_options(*each: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Make one decorator of several options, which `--help` shows in this order."""

    def give(command: _Command) -> _Command:
        for option in reversed(each):
            command = option(command)
        return command

    return give


def _without_password(
    _context: click.Context, _option: click.Parameter, url: str | None
) -> str | None:
    """Warn of a password, which every user of this machine sees among the processes."""
    with suppress(psycopg.ProgrammingError):  # if it is no URL, then whoever reads it says so
        if {"password", "sslpassword"} & conninfo_to_dict(url or "").keys():
            click.echo(
                "warning: --postgres has a password, and others see the command lines of this"
                " machine: give it in HARVEST_POSTGRES, PGPASSWORD or ~/.pgpass",
                err=True,
            )
    return url


postgres_option = click.option(
    "--postgres",
    metavar="URL",
    callback=_without_password,
    help="PostgreSQL, as postgresql://user@host/database. No password here, since others see it:"
    " PGPASSWORD, ~/.pgpass or the URL in HARVEST_POSTGRES may have it. [env: HARVEST_POSTGRES]",
)
outbox_option = click.option(
    "--outbox", metavar="TABLE", help="The outbox's table [default: outbox; env: HARVEST_OUTBOX]"
)
size_option = click.option(
    "--max-message-bytes",
    type=click.IntRange(1),
    help="The largest message that your topics take [default: 1048588, as Kafka's]",
)


class _Renamed(click.Option):
    """An option that is shown by its first name alone, since the other is its old one."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Leave the old name out."""
        shown = super().get_help_record(ctx)
        return shown and (shown[0].replace(f", {self.opts[1]}", ""), shown[1])


name_option = click.option("--name", help="The harvest's name [default: the outbox's]")
of_option = click.option(
    "--of",
    "--name",
    "name",
    cls=_Renamed,
    metavar="NAME",
    help="Whose records: the name of what is led [default: the outbox's]",
)
limit_option = click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1), help="Show so many at most."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
outbox_options = with_options(outbox_option, postgres_option)
harvest_options = with_options(name_option, outbox_option, postgres_option)


def connected(settings: Settings) -> AbstractContextManager[psycopg.Connection[Any]]:
    """Connect to PostgreSQL for one transaction, committed if all goes well."""
    return one_transaction(settings.postgres_url(), "command")


def chosen(
    postgres: str | None, outbox: str | None, max_message_bytes: int | None = None
) -> tuple[Settings, Outbox]:
    """Make settings, and the outbox that they name."""
    settings = load_settings(postgres=postgres, outbox=outbox, max_message_bytes=max_message_bytes)
    return settings, Outbox.named(settings.outbox, max_message_bytes=settings.max_message_bytes)


def harvest_name(connection: psycopg.Connection[Any], name: str | None, outbox: Outbox) -> str:
    """Return what a harvest is called: as its outbox, or as was given, if one that has led is.

    Before any has led, it may be the name of one that is to come. The name of whatever else is led
    is taken as well. An outbox must be there, or have been: else a typing error would read as if
    all were well.
    """
    is_there = is_table(connection, outbox.table)
    if not name and is_there:
        return str(outbox.table)
    led = {row.name: row.word for row in leases.read(connection)}
    harvests = ", ".join(sorted(of for of, word in led.items() if word == OUTBOX))
    if not name and str(outbox.table) not in led:
        raise OutboxError(
            f"there is no table {outbox.table}: make it with `harvest outbox create --outbox"
            f" {outbox.table}`; and no harvest of that name has led"
            f"{', there are: ' * bool(harvests)}{harvests}"
        )
    if not name:
        return str(outbox.table)
    if harvests and name not in led:
        raise HarvestStateError(f"no harvest named {name} has led yet; there are: {harvests}")
    return name


def filters(**given: str | Sequence[str] | None) -> str:
    """Write the options that narrow a list as they were given, to say what nothing fits."""
    each = {name: [of] if isinstance(of, str) else of or () for name, of in given.items()}
    return " ".join(f"--{name} {value}" for name, values in each.items() for value in values)


def operator() -> str:
    """Return who gives the command, as this machine knows the user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
