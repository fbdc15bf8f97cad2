"""`harvest parked`: records that Kafka refused for good, and what to do about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from harvest_dagster.cli.parked_record import as_dict, cells, contents, lines
from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    filters,
    harvest_name,
    json_option,
    limit_option,
    of_option,
    operator,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table, say
from harvest_dagster.harvest import parked_verbs
from harvest_dagster.outbox import parked as records
from harvest_dagster.outbox.parked import Choice
from harvest_dagster.text import counted
from harvest_dagster.work.room import Did

_Command = TypeVar("_Command", bound=Callable[..., None])

_topic = click.option("--topic", help="Only records for this topic.")
_key = click.option("--key", help="Only records with this key.")


@click.group(short_help="Records that Kafka refused: look, put back, or let go.")
def parked() -> None:
    """Records that Kafka refused for good: look at them, put them back, or let them go."""


@parked.command("list")
@_topic
@_key
@limit_option
@json_option
@of_option
@outbox_option
@postgres_option
def list_(
    *,
    topic: str | None,
    key: str | None,
    limit: int,
    as_json: bool,
    name: str | None,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """List what is set aside now, in the order of the ids."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        choice = Choice(harvest_name(connection, name, place), None, topic, key)
        found = records.read(connection, choice, limit=limit)
    if as_json:
        print_json([as_dict(record) for record in found])
    elif found:
        head = ("id", "topic", "key", "size", "tries", "parked at", "reason")
        print_table(head, [cells(record) for record in found])
    elif narrowed := filters(topic=topic, key=key):
        say(f"nothing that is set aside in {choice.name} matches {narrowed}")
    else:
        click.echo("nothing is set aside")


@parked.command(short_help="Show one record, and why it was set aside.")
@click.argument("record_id", metavar="ID", type=int)
@json_option
@of_option
@outbox_option
@postgres_option
def show(
    *, record_id: int, as_json: bool, name: str | None, outbox: str | None, postgres: str | None
) -> None:
    """Show one record: its headers, its size, the beginning of its value, and the reason.

    With --json it is whole, so that it can be kept.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        choice = Choice(harvest_name(connection, name, place), (record_id,))
        (record,) = records.chosen(connection, choice, whole=True)
    if as_json:
        print_json({**as_dict(record), **contents(record)})
    else:
        print_table(("record", str(record.id)), lines(record))


def _choosing(command: _Command) -> _Command:
    """Give a command the options that choose records."""
    options = (
        click.argument("ids", metavar="[ID]...", nargs=-1, type=int),
        _topic,
        _key,
        click.option("--all", "everything", is_flag=True, help="All that is set aside."),
        of_option,
        outbox_option,
        postgres_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@parked.command(short_help="Put records back into the outbox, in their old places.")
@_choosing
def requeue(
    *,
    ids: tuple[int, ...],
    topic: str | None,
    key: str | None,
    everything: bool,
    name: str | None,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Put records back into the outbox, in their old places: each before its key's later ones.

    Mend first what they were refused for, or they will be refused again.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        choice = _choice(name, ids, topic, key, everything=everything)
        found = records.chosen(connection, choice)
        did = parked_verbs.requeue(connection, place.table, choice.name, found, operator())
    _print(did)


@parked.command(short_help="Forget records for good; later ones go out without them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_choosing
def discard(
    *,
    yes: bool,
    ids: tuple[int, ...],
    topic: str | None,
    key: str | None,
    everything: bool,
    name: str | None,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Forget records for good; their keys' later records go out without them."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        name = harvest_name(connection, name, place)
        choice = _choice(name, ids, topic, key, everything=everything)
        found = records.chosen(connection, choice)
    if found and not yes:
        question = (
            f"Discard {counted(len(found), 'record')} of {choice.name}, never to be published?"
        )
        click.confirm(question, abort=True, err=True)
    with connected(settings) as connection:
        did = parked_verbs.discard(connection, choice.name, found, operator())
    _print(did)


def _print(did: Did) -> None:
    for line in did.lines:
        say(line)


def _choice(
    name: str, ids: tuple[int, ...], topic: str | None, key: str | None, *, everything: bool
) -> Choice:
    choice = Choice(name, ids or None, topic, key)
    if everything == choice.narrow:
        raise click.UsageError(
            "say which: ids as `harvest parked list` tells them, or --topic or --key or both, or"
            " --all alone"
        )
    return choice
