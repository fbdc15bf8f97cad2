"""The page of everything that can be configured."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from harvest_dagster.config import PROJECT_FILE, Settings
from harvest_dagster.harvest.config import RECORDS, HarvestConfig, Limits
from harvest_dagster.harvest.goharvest_limits import GoharvestLimits
from harvest_dagster.harvest.reaper_yaml import NAMES
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxComponent,
    OutboxResource,
)
from harvest_dagster.reader import ReaderConfig
from harvest_dagster.work.durations import format_duration
from scripts.markdown import grid

_DAGSTER = (OutboxResource, KafkaResource, NeliResource, HarvestResource, OutboxComponent)


def config() -> Iterator[str]:
    """Yield the page of everything that can be configured."""
    yield "# Configuration\n"
    yield "## Where PostgreSQL and Kafka are\n"
    yield "[Your own](../how-to/own-servers.md) says which place wins, and shows an example.\n"
    yield from grid(
        ("environment", str(PROJECT_FILE), "default", "is"),
        (
            (f"`HARVEST_{name.upper()}`", f"`{name}`", _default(field), field.description)
            for name, field in Settings.model_fields.items()
        ),
    )
    yield "\n## A harvest\n"
    yield "The fields of `HarvestConfig`, and keys of [reaper.yaml](../how-to/reap.md#the-file)."
    yield "What follows from another field is shown as it is for the outbox `outbox`.\n"
    kafka = {"bootstrap.servers": "localhost:9092"}
    given = HarvestConfig.model_validate({"base_kafka": kafka, "postgres": "host=db"})
    yield from _fields(HarvestConfig, given, given)
    yield "\n## Its limits\n"
    yield "The fields of `Limits`; a number in Python is of seconds, where text is a duration. Of a"
    yield "reaper.yaml at least once, they are goharvest's: 1,000 in flight, and 100 at once.\n"
    yield from _fields(Limits, given.limits, Limits().suited_to(RECORDS["at_least_once"]))
    ignored = (name for name in GoharvestLimits.model_fields if name not in Limits.model_fields)
    yield f"\nRead from a reaper.yaml, without effect: {', '.join(map(_key, ignored))}."
    yield f"goharvest's `limits.queueTimeout` is {_key('drain_timeout')}; in Python,"
    yield "`queue_timeout` is the old name of `drain_timeout`: it is taken, with a warning."
    yield "\n## A reader\n"
    yield "The fields of `ReaderConfig`, and keys of [reader.yaml](../how-to/read.md#without-code),"
    yield "where `kafka` and `postgres` are those of the settings.\n"
    yield from _model(ReaderConfig)
    yield "\n## In Dagster\n"
    yield "Every field may be left out: names then follow from the table, numbers of records from"
    yield "the delivery, and places from the settings. The fields of `OutboxComponent` are the"
    yield "attributes in a [`defs.yaml`](../how-to/operate-dagster.md#without-python)."
    for part in _DAGSTER:
        yield f"\n### {part.__name__}\n"
        yield from _model(part)


def _fields(model: type[BaseModel], one: BaseModel, other: BaseModel) -> Iterator[str]:
    def row(name: str, field: FieldInfo) -> tuple[object, ...]:
        first, second = _shown(getattr(one, name)), _shown(getattr(other, name))
        if field.is_required():
            first = second = "as the settings"
        default = first if first == second else f"{first}; at least once {second}"
        return (f"`{name}`", _key(name), default, field.description)

    head = ("field", "key", "default", "is")
    return grid(head, (row(*item) for item in model.model_fields.items()))


def _key(name: str) -> str:
    return f"`{NAMES[name].removeprefix('harvest.')}`"


def _model(model: type[BaseModel]) -> Iterator[str]:
    rows = (
        (f"`{name}`", _default(field), field.description)
        for name, field in model.model_fields.items()
        if field.description
    )
    return grid(("field", "default", "is"), rows)


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return "" if isinstance(value, BaseModel) else _shown(value)


def _shown(value: object) -> str:
    if value is None or value in ({}, []) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{format_duration(value) if isinstance(value, float) else value}`"
