"""`harvest dev ...`: PostgreSQL and Kafka of this machine."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harvest_dagster import embedded
from harvest_dagster.cli.demo_dagster import stop_dagster
from harvest_dagster.cli.show import say
from harvest_dagster.config import load_settings, names_own_servers
from harvest_dagster.embedded import server_logs
from harvest_dagster.embedded.added import OFFERED
from harvest_dagster.embedded.interrupt import politely_ended
from harvest_dagster.embedded.ports import HOST

if TYPE_CHECKING:
    from harvest_dagster.embedded import Server, Servers

_OFFERED = "; ".join(f"{name}, {what}" for name, what in OFFERED.items())
_SECRET = {"password", "secret_access_key"}


def _say(line: str) -> None:
    click.echo(line, err=True)


def _settled(_context: click.Context, _option: click.Parameter, home: Path | None) -> Path:
    return load_settings(home=home).home


def _names(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    return [name.strip() for names in given for name in names.split(",")]


_home = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    callback=_settled,
    help="Where the servers keep their state; .harvest by default.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, with the passwords.")


@click.group()
def dev() -> None:
    """Run a real PostgreSQL and a real Kafka on this machine."""


@dev.command()
@_home
@click.option("--brokers", type=click.Choice(["1", "3"]), help="Nodes of Kafka; 1 by default.")
@click.option(
    "--secure",
    is_flag=True,
    default=None,
    help="Make both ask for TLS, and for passwords or certificates.",
)
@click.option(
    "--with",
    "parts",
    metavar="NAME,...",
    multiple=True,
    callback=_names,
    help=f"Add servers, downloaded the first time: {_OFFERED}.",
)
@click.option(
    "--without",
    metavar="NAME,...",
    multiple=True,
    callback=_names,
    help="Stop servers that were added, and start them no more; their data stays.",
)
@click.option("--new-ports", is_flag=True, help="Restart the servers on other ports.")
@_json
def up(
    *,
    home: Path,
    brokers: str | None,
    secure: bool | None,
    parts: list[str],
    without: list[str],
    new_ports: bool,
    as_json: bool,
) -> None:
    """Start PostgreSQL and Kafka, and return when both answer.

    The first time this downloads Kafka (44 MB), and with --secure a PostgreSQL that speaks TLS
    (15 MB), and sets both up. Run it again at any time: it starts what does not run, also of what
    --with added before. While the servers run every other command finds them by itself.
    """
    nodes = int(brokers) if brokers else None
    if without:
        embedded.drop(home, without, say=_say)
    servers = embedded.up(
        home, brokers=nodes, secure=secure, new_ports=new_ports, parts=parts, say=_say
    )
    _show(servers, as_json=as_json)


@dev.command(short_help="Stop all, and Dagster if it runs; their data stays.")
@_home
def down(*, home: Path) -> None:
    """Stop all, and a Dagster that `harvest dev dagster` started; their data stays."""
    stop_dagster(home, _say)
    embedded.down(home, say=_say)


@dev.command(short_help="Show which servers run, and where.")
@_home
@_json
def status(*, home: Path, as_json: bool) -> None:
    """Show which servers run, and where; the exit code is 0 even if none does (see "running")."""
    _show(embedded.status(home).servers, as_json=as_json)


@dev.command(short_help="Print the last lines of all logs, or of one server's.")
@_home
@click.argument("name", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged from now on.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="How many of the last lines of each.",
)
def logs(*, home: Path, name: str | None, follow: bool, lines: int) -> None:
    """Print the last lines of all logs, or of the log of one server: postgres, kafka-1, ..."""
    for line in server_logs.tail(home, name, lines, follow=follow):
        say(line.expandtabs())


@dev.command()
@_home
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(*, home: Path, yes: bool) -> None:
    """Stop all, and delete their data; what was added is forgotten."""
    if not yes:
        click.confirm(f"Delete all data of the servers in {home}?", abort=True, err=True)
    stop_dagster(home, _say)
    embedded.reset(home, say=_say)


@dev.command(context_settings={"ignore_unknown_options": True})
@_home
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(*, home: Path, arguments: tuple[str, ...]) -> None:
    """Run psql, with these arguments, in the database of this home."""
    # What it needs comes with the `embedded` extra.
    from harvest_dagster.embedded.psql import become_psql  # noqa: PLC0415

    become_psql(embedded.status(home).servers, arguments)


@dev.command(short_help="Start PostgreSQL, Kafka, and Dagster with its UI.")
@_home
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the UI; 3000 if it is free.")
@click.option("--host", default=HOST, show_default=True, help="Address that the UI listens on.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="How much Dagster says here; the UI has the logs of runs and ticks.",
)
def dagster(*, home: Path, port: int | None, host: str, log_level: str) -> None:
    """Start PostgreSQL and Kafka, and Dagster with its UI for the project in this directory.

    Ctrl-C ends Dagster; PostgreSQL and Kafka go on running until `harvest dev down`. With servers
    of your own (HARVEST_POSTGRES) it uses those. Run it again: runs, events and sensors are kept.
    """
    with politely_ended():
        run_dagster(home, port=port, host=host, log_level=log_level)


def run_dagster(home: Path, *, port: int | None, host: str, log_level: str) -> None:
    """Start the servers, then Dagster, and wait until Ctrl-C ends that."""
    # What it needs comes with the `embedded` extra.
    from harvest_dagster.embedded.dagster_ui import dagster_ui  # noqa: PLC0415

    if not names_own_servers():
        embedded.up(home, say=_say)
    with (
        dagster_ui(home, _say, host=host, port=port, log_level=log_level) as ui,
        suppress(KeyboardInterrupt),
    ):
        ui.await_answer()
        _say(f"Dagster's UI: {ui.url}  (Ctrl-C ends it)")
        ui.wait(_say)


def _show(servers: Servers | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_as_dict(servers), indent=2))
    elif servers is None:
        click.echo("no servers were set up here: start them with `harvest dev up`")
    else:
        for server in servers.each:
            state = f"runs as {server.pid}" if server.running else "does not run"
            click.echo(f"{server.name:12} {state:16} port {server.port}  log {server.log}")
        click.echo(f"\nPostgreSQL {re.sub(':[^:@]*@', ':***@', servers.postgres)}")
        click.echo(f"Kafka      {servers.kafka}")
        for name, address in servers.parts.items():
            shown = {key: "***" if key in _SECRET else value for key, value in address.items()}
            click.echo(f"{name:10} {' '.join(f'{key}={value}' for key, value in shown.items())}")


def _as_dict(servers: Servers | None) -> dict[str, Any]:
    return {
        "running": servers.running if servers else False,
        "postgres": servers.postgres if servers else None,
        "kafka": servers.kafka if servers else None,
        "kafka_config": servers.kafka_config if servers else {},
        "mtls": asdict(servers.mtls) if servers and servers.mtls else None,
        "parts": servers.parts if servers else {},
        "servers": [_as_row(server) for server in servers.each] if servers else [],
    }


def _as_row(server: Server) -> dict[str, Any]:
    return {
        "name": server.name,
        "port": server.port,
        "pid": server.pid,
        "running": server.running,
        "log": str(server.log),
    }
