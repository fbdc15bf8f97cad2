"""The command `harvest`."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click
import psycopg

from harvest_dagster import ctrl_c
from harvest_dagster.cli.demo import demo
from harvest_dagster.cli.dev import dev
from harvest_dagster.cli.history import history
from harvest_dagster.cli.lease_commands import lease
from harvest_dagster.cli.parked_commands import parked
from harvest_dagster.cli.pump import pump
from harvest_dagster.cli.reap import reap
from harvest_dagster.cli.room_commands import groups
from harvest_dagster.cli.stash import stash
from harvest_dagster.cli.status import status
from harvest_dagster.cli.topic import topic
from harvest_dagster.errors import HarvestError
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.text import printable

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class _CommandLine(click.Group):
    """Prints what went wrong as one line, and keeps tracebacks for bugs."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        _have_streams()
        try:
            with ctrl_c.raised():
                return super().invoke(ctx)
        except HarvestError as error:
            _fail(str(error))
        except psycopg.Error as error:
            _fail(f"PostgreSQL: {explained(error)}{_advice(error)}")
        except BrokenPipeError:
            _write_no_more()
            sys.exit(1)
        except OSError as error:
            if error.errno not in _FULL or error.filename:
                raise
            _write_no_more()
            _fail(f"the output: {error.strerror}")
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(ctrl_c.INTERRUPTED)


@click.group(cls=_CommandLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="harvest-dagster")
def main() -> None:
    """Messages from PostgreSQL to Kafka: stashed in your transaction, out once and in order.

    PostgreSQL and Kafka are found through HARVEST_POSTGRES and HARVEST_KAFKA, harvest.toml, or the
    servers that `harvest dev up` started here.
    """


for _command in (demo, dev, history, lease, parked, pump, reap, stash, status, topic, *groups()):
    main.add_command(_command)


def _have_streams() -> None:
    """Have a closed stream be an empty one, which nobody stumbles over."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 - it lasts as long as we do
            setattr(sys, name, stream)


def _write_no_more() -> None:
    """Let the interpreter not write again, at its exit, to where nothing can be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _advice(error: psycopg.Error) -> str:
    """Return how to make a table of ours that is missing, or bring it up to date."""
    is_missing = isinstance(error, psycopg.errors.UndefinedTable) and '"harvest.' in str(error)
    is_old = isinstance(error, psycopg.errors.UndefinedColumn)
    return "; run `harvest outbox migrate`" if is_missing or is_old else ""


def _fail(message: str) -> NoReturn:
    click.echo(f"harvest: {printable(message)}", err=True)
    sys.exit(1)
