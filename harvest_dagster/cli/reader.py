"""`harvest reader`: what every room has, and what the sequencer makes of messages."""

from __future__ import annotations

import json
from typing import TextIO

import click

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.config import load_settings
from harvest_dagster.reader.room import ROOM
from harvest_dagster.reader.topic_trace import trace_topic
from harvest_dagster.sequence.tracing import Tracing

reader = group_of(ROOM)


@reader.command(short_help="Show what becomes of messages, and why.")
@click.option("--file", type=click.File(), help="Messages, one JSON object a line; - is stdin.")
@click.option("--topic", help="Read the records of this topic instead, as committed.")
@click.option(
    "--ring", default=8192, show_default=True, help="How many pending messages are kept at hand."
)
def trace(file: TextIO | None, topic: str | None, ring: int) -> None:
    """Show what the sequencer makes of messages: what becomes of each, and what counts then.

    A line in is {"journal": "j", "producer": "A", "clock": 1, "flags": "CONTINUE", "begin": 0,
    "end": 1}, with flags OUTSIDE, CONTINUE, ACK, SETTLE or a number; or {"checkpoint": {}}, or
    {"restore": true}. A line out is {"outcome": "ContinueBeginSpan", "emitted": []}, with
    "replayed": [begin, end] where the ring was too small. Of a topic's records each line out also
    has what the record says.
    """
    if (file is None) == (topic is None):
        raise click.UsageError("give --file or --topic")
    if file is not None:
        for line in Tracing(ring).lines(file):
            click.echo(line)
    elif topic is not None:
        for found in trace_topic(load_settings().kafka_config(), topic, ring):
            click.echo(json.dumps(found))
