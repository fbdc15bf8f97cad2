"""`harvest demo`: the main job, from nothing, on real parts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg

from harvest_dagster import embedded
from harvest_dagster.cli.demo_dagster import TOPIC, can_show, show_in_dagster, stop_dagster
from harvest_dagster.cli.shared_options import chosen, connected
from harvest_dagster.cli.show import print_table, this_command
from harvest_dagster.config import load_settings, names_own_servers
from harvest_dagster.kafka.topics import ensure_topic
from harvest_dagster.outbox import Message, Outbox, stash
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.cli", "demo.sql")
_CUSTOMERS = ("ada", "grace", "edsger")
_SHOWN = 6
_PARTITIONS = 4


@click.command(short_help="Start all, stash orders, and see them harvested, in a UI.")
@click.option("--ui/--no-ui", default=True, help="Go on in Dagster, where that is installed.")
def demo(*, ui: bool) -> None:
    """Start PostgreSQL and Kafka, stash orders, and see them harvested, in Dagster's UI.

    The servers and the UI go on running; Ctrl-C before the end stops what it started. With servers
    of your own (HARVEST_POSTGRES) it uses those.
    """
    since, ui = time.monotonic(), ui and can_show()
    steps = 6 if ui else 3
    with _servers(steps):
        settings, outbox = chosen(None, None)
        if ui:
            settings.kafka_config()  # fail now if none is named, and not later when no sensor leads
        click.echo(f"2/{steps}  the outbox: table {outbox.table}, schema harvest")
        with connected(settings) as connection:
            create(connection, outbox.table, Kind.NATIVE)
            connection.execute(_SQL["table"].text)
        if settings.kafka:
            ensure_topic(settings.kafka_config(), TOPIC, _PARTITIONS)
        click.echo(f"3/{steps}  one transaction that commits, and one that rolls back")
        with connected(settings) as connection:
            _order_twice(connection, outbox)
        url = show_in_dagster(settings, outbox, _say, since) if ui else None
    harvest = this_command()
    click.echo(f"\nSee it in Dagster's UI: {url or f'{harvest} dev dagster'}\nLook around:\n")
    for words in ("status", f"topic read {TOPIC}", "dev psql", "dev down    # the data stays"):
        click.echo(f"    {harvest} {words}")


@contextmanager
def _servers(steps: int) -> Iterator[None]:
    if names_own_servers():
        click.echo(f"1/{steps}  PostgreSQL and Kafka: your own")
        yield
        return
    click.echo(f"1/{steps}  PostgreSQL and Kafka on this machine")
    home = load_settings().home
    ours = not embedded.status(home).running
    try:
        embedded.up(home, say=_say)
        yield
    except BaseException:
        if ours:
            stop_dagster(home, _say)
            embedded.down(home, say=_say)
        raise


def _order_twice(connection: psycopg.Connection[Any], outbox: Outbox) -> None:
    with connection.transaction():
        count = sum(_order(connection, outbox, customer) for customer in _CUSTOMERS)
        _show(connection, outbox)  # before the commit, after which a leader may take them at once
    _say(f"committed {count} orders with their messages")
    with connection.transaction():
        _order(connection, outbox, "nobody")
        raise psycopg.Rollback
    _say("rolled an order back, and its message with it")


def _order(connection: psycopg.Connection[Any], outbox: Outbox, customer: str) -> int:
    total = 10 + len(customer)
    row = connection.execute(_SQL["order"].text, (customer, total)).fetchone()
    event = {"order": row[0] if row else None, "customer": customer, "total": total}
    return stash(connection, Message(TOPIC, customer, event, {"source": "demo"}), outbox=outbox)


def _show(connection: psycopg.Connection[Any], outbox: Outbox) -> None:
    newest = connection.execute(_SQL["newest"].sql(table=outbox.table), (_SHOWN,)).fetchall()
    print_table(("id", "topic", "key", "value", "headers"), newest[::-1])


def _say(line: str) -> None:
    click.echo(f"     {line}")
