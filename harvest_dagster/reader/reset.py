"""What an operator can do to a reader: have it go on elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import psycopg
from pydantic import BaseModel, Field

from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger import events
from harvest_dagster.reader.positions import Partition, Position
from harvest_dagster.reader.readership import ReaderName
from harvest_dagster.reader.source_topics import SourceTopic, SourceTopics
from harvest_dagster.work.room import Call, Did, Verb


class Reset(BaseModel):
    """Where it is to go on."""

    topic: str | None = Field(default=None, description="the topic")
    partition: int | None = Field(
        default=None, description="one partition, from 0 on; null: all of them"
    )
    to: str | None = Field(
        default=None, description="earliest, end, or for one partition an offset"
    )


def _reset(call: Call, options: Reset) -> Did:
    led = cast("ReaderName", call.led)
    if options.topic is None:
        raise ConfigError("topic: name the topic in which it is to go on elsewhere")
    topics = SourceTopics(led.kafka)
    topic = topics.look([options.topic])[options.topic]
    offsets = _offsets(topics, topic, options)
    to = [Position(*place, topic.id, offset, 0, 0) for place, offset in offsets.items()]
    with led.store.connect(f"{led.name} reset") as connection:
        led.store.prepare(connection)
        before = {each.place: each.offset for each in led.store.positions(connection, led.name)}
        led.store.reset(connection, led.name, to)
    lines = [_line(each, before) for each in to]
    _note(call.connection, led.name, {"topic": topic.name, "to": options.to, "by": call.by})
    return Did(lines, {"partitions": len(to), "topic": topic.name, "to": str(options.to)})


def _offsets(topics: SourceTopics, topic: SourceTopic, options: Reset) -> Mapping[Partition, int]:
    places = topic.places
    if options.partition is not None:
        places = [place for place in places if place[1] == options.partition]
    if not places:
        raise ConfigError(f"partition: {topic.name} has {topic.partitions}, from 0 on")
    if options.to == "earliest":
        return topics.lows(places)
    if options.to == "end":
        return topics.highs(places)
    if options.to is None or not options.to.isdecimal() or options.partition is None:
        raise ConfigError("to: give earliest, end, or an offset with --partition")
    return dict.fromkeys(places, int(options.to))


def _line(to: Position, before: Mapping[Partition, int]) -> str:
    was = before.get(to.place)
    instead = "" if was is None else f" instead of {was}"
    return f"{to.topic}, partition {to.partition}: goes on at {to.offset}{instead}"


def _note(connection: psycopg.Connection[object], name: str, detail: dict[str, object]) -> None:
    events.record(connection, name, 0, "reset", detail)


RESET = Verb(
    "reset",
    "Has the reader go on elsewhere in a topic, whoever reads now: for when it was stopped because"
    " records are gone. What counted stays counted: a message that was applied by its UUID is not"
    " applied again, and spans that are open are given up.",
    Reset,
    _reset,
)
