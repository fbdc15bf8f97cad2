"""`harvest stash`: JSON lines into the outbox, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import click

from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    outbox_option,
    postgres_option,
    size_option,
)
from harvest_dagster.cli.show import CountLine
from harvest_dagster.config import Settings
from harvest_dagster.kafka.topics import missing
from harvest_dagster.outbox import Message
from harvest_dagster.outbox.stash_lines import stash_lines
from harvest_dagster.text import counted, printable

_ASKED, _ASK_SECONDS = 20, 3.0


@click.command(short_help="Stash messages, a JSON object a line: all or none.")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@size_option
@outbox_option
@postgres_option
def stash(
    file: TextIO, max_message_bytes: int | None, outbox: str | None, postgres: str | None
) -> None:
    """Stash the messages of FILE (standard input if none), a JSON object a line: all or none.

    \b
    {"topic": "orders", "key": "7", "value": {"total": 12.5}, "headers": {"trace": "ab12"}}

    key and value may be null, or key_base64 and value_base64 for bytes; headers may also be an
    array of [key, value]; partition is optional. A bad line is named, and nothing is stashed.
    """  # noqa: D301 - click's mark for a block that is not to be wrapped
    settings, place = chosen(postgres, outbox, max_message_bytes)
    line, topics = CountLine("messages"), dict[str, None]()

    def heard(message: Message) -> None:
        line.add(1)
        topics[message.topic] = None

    with connected(settings) as connection:
        count = stash_lines(connection, file, place, heard)
    click.echo(f"stashed {counted(count, 'message')} into {place.table}")
    _warn_of_missing(settings, [*topics][:_ASKED])


def _warn_of_missing(settings: Settings, topics: Sequence[str]) -> None:
    """Say which topics are not there, if Kafka is known: their messages wait until they are."""
    if not settings.kafka.get("bootstrap.servers"):
        return
    for topic in missing(settings.kafka_config(), topics, within_seconds=_ASK_SECONDS):
        click.echo(
            f"warning: there is no topic {printable(topic)}: its messages wait for it; make it with"
            f" `harvest topic create {printable(topic)}`",
            err=True,
        )
