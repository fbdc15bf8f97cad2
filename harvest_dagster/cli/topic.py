"""`harvest topic`: make a topic, and read what is in it."""

from __future__ import annotations

from base64 import b64encode

import click

from harvest_dagster.cli.shared_options import json_option
from harvest_dagster.cli.show import print_json, print_table, say
from harvest_dagster.config import load_settings
from harvest_dagster.kafka.newest import Read, read_newest
from harvest_dagster.kafka.topics import ensure_topic

_LONGEST = 100
HEAD = ("topic", "partition", "offset", "key", "value")
"""Of a table of messages, whose lines `cells` makes."""


@click.group(short_help="Make a topic, and read what is in it.")
def topic() -> None:
    """Make a topic, and read what is in it: in the Kafka of the settings (HARVEST_KAFKA)."""


@topic.command(short_help="Create a topic, unless it is there.")
@click.argument("name")
@click.option(
    "--partitions",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    help="How many partitions; a key's messages are in one of them.",
)
def create(name: str, partitions: int) -> None:
    """Create the topic NAME, unless it is there; replicated as the cluster does by default.

    Exit code 1 if it is there with fewer partitions.
    """
    created = ensure_topic(load_settings().kafka_config(), name, partitions)
    partly = f"{partitions} partitions" if partitions > 1 else "1 partition"
    say(f"created {name} ({partly})" if created else f"{name} is there already, unchanged")


@topic.command(short_help="Print the last messages of a topic.")
@click.argument("name")
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="So many messages of each partition, at most.",
)
@json_option
def read(name: str, last: int, *, as_json: bool) -> None:
    """Print the last messages of the topic NAME, as a consumer reads what was committed."""
    found = read_newest(load_settings().kafka_config(), name, last)
    if as_json:
        print_json([_as_dict(message) for message in found])
    elif found:
        print_table(HEAD, [cells(message) for message in found])
    else:
        say(f"there is nothing in {name}")


def cells(message: Read) -> tuple[object, ...]:
    """Return a message as a line of a table, and not all of a long value."""
    place = (message.topic, message.partition, message.offset)
    return (*place, _shown(message.key), _shown(message.value))


def _shown(given: bytes | None) -> str:
    text = "-" if given is None else given.decode(errors="backslashreplace")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _as_dict(message: Read) -> dict[str, object]:
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        **_content("key", message.key),
        **_content("value", message.value),
        "headers": [{"key": key, **_content("value", value)} for key, value in message.headers],
    }


def _content(name: str, given: bytes | None) -> dict[str, str | None]:
    """Return content as `harvest stash` takes it: as text where it is text."""
    if given is None:
        return {name: None}
    try:
        return {name: given.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(given).decode()}
