"""`harvest demo`: the main job, from nothing, on real parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg

from harvest_dagster import embedded
from harvest_dagster.cli.options import chosen, connected
from harvest_dagster.cli.show import print_table
from harvest_dagster.config import load_settings, names_own_servers
from harvest_dagster.outbox import Message, Outbox, stash
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.cli", "demo.sql")
_CUSTOMERS = ("ada", "grace", "edsger")
_SHOWN = 6


@click.command()
def demo() -> None:
    """Start PostgreSQL and Kafka, create an outbox, stash orders into it, and show them.

    Ctrl-C stops what it started. With servers of your own (HARVEST_POSTGRES) it uses those.
    """
    with _servers():
        settings, outbox = chosen(None, None)
        click.echo(f"2/4  the outbox: table {outbox.table}, schema harvest")
        with connected(settings) as connection:
            create(connection, outbox.table, Kind.NATIVE)
            connection.execute(_SQL["table"].text)
        click.echo("3/4  one transaction that commits, and one that rolls back")
        with connected(settings) as connection:
            _order_twice(connection, outbox)
        click.echo("4/4  the newest messages in the outbox")
        with connected(settings) as connection:
            _show(connection, outbox)
    click.echo(
        "\nSee it in Dagster's UI: `harvest dev dagster`."
        "\nLook around: `harvest outbox stats`, `harvest dev status`, `harvest dev psql`."
        "\nStop: `harvest dev down`; the data stays."
    )


@contextmanager
def _servers() -> Iterator[None]:
    if names_own_servers():
        click.echo("1/4  PostgreSQL and Kafka: your own")
        yield
        return
    click.echo("1/4  PostgreSQL and Kafka on this machine")
    home = load_settings().home
    ours = not embedded.status(home).running
    try:
        embedded.up(home, say=_say)
        yield
    except BaseException:
        if ours:
            embedded.down(home, say=_say)
        raise


def _order_twice(connection: psycopg.Connection[Any], outbox: Outbox) -> None:
    with connection.transaction():
        count = sum(_order(connection, outbox, customer) for customer in _CUSTOMERS)
        _say(f"committed {count} orders with their messages")
    with connection.transaction():
        _order(connection, outbox, "nobody")
        raise psycopg.Rollback
    _say("rolled an order back, and its message with it")


def _order(connection: psycopg.Connection[Any], outbox: Outbox, customer: str) -> int:
    total = 10 + len(customer)
    row = connection.execute(_SQL["order"].text, (customer, total)).fetchone()
    event = {"order": row[0] if row else None, "customer": customer, "total": total}
    return stash(connection, Message("orders", customer, event, {"source": "demo"}), outbox=outbox)


def _show(connection: psycopg.Connection[Any], outbox: Outbox) -> None:
    newest = connection.execute(_SQL["newest"].sql(table=outbox.table), (_SHOWN,)).fetchall()
    print_table(("id", "topic", "key", "value", "headers"), newest[::-1])
    row = connection.execute(_SQL["orders"].text).fetchone()
    _say(f"{row[0] if row else 0} orders in the table demo_order")


def _say(line: str) -> None:
    click.echo(f"     {line}")
