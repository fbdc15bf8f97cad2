"""Records that Kafka refused for good: look at them, put them back, or let them go.

A record that is put back keeps its id, and so its place before its key's later records, which have
waited for it. Its row among the parked stays, so that another refusal goes on counting the tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg.rows import class_row
from psycopg.sql import SQL

from harvest_dagster.errors import HarvestStateError, OutboxError
from harvest_dagster.ledger import events
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.text import printable

_SQL = statements("harvest_dagster.outbox", "parked.sql")
COUNTED = 20_000
"""Parked records are counted up to this many: the sensor does so with every tick."""
_HEADERS: LiteralString = """ARRAY(SELECT convert_from(item, 'UTF8')
    FROM unnest(kafka_header_values) WITH ORDINALITY AS found(item, place) ORDER BY place)"""


@dataclass(frozen=True, slots=True)
class Parked:
    """A record that is set aside; its value is there only where it was asked for."""

    id: int
    shard: int
    create_time: datetime | None
    topic: str
    key: bytes | None
    value: bytes | None
    value_bytes: int | None
    header_keys: list[str]
    header_values: list[bytes | None]
    partition: int | None
    reason: str
    tries: int
    parked_at: datetime
    requeued_at: datetime | None
    holds_key: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Which parked records; of what is not given, any."""

    name: str
    ids: tuple[int, ...] | None = None
    topic: str | None = None
    key: str | None = None

    @property
    def narrow(self) -> bool:
        """Whether anything was given, so that it is not all that is set aside."""
        return bool(self.ids) or self.topic is not None or self.key is not None


def read(
    connection: psycopg.Connection[Any],
    choice: Choice,
    *,
    limit: int | None = None,
    whole: bool = False,
) -> list[Parked]:
    """Read parked records in the order of their ids.

    `whole` reads their values too, and not only what is set aside now, but what was requeued.
    """
    values = {
        "name": choice.name,
        "ids": None if choice.ids is None else list(choice.ids),
        "topic": choice.topic,
        "key": None if choice.key is None else choice.key.encode(errors="surrogateescape"),
        "limit": limit,
        "whole": whole,
    }
    with connection.cursor(row_factory=class_row(Parked)) as cursor:
        return cursor.execute(_SQL["list"].text, values).fetchall()


def chosen(
    connection: psycopg.Connection[Any], choice: Choice, *, whole: bool = False
) -> list[Parked]:
    """Read what was chosen; each id that was given must be there."""
    found = read(connection, choice, whole=whole)
    missing = set(choice.ids or ()) - {record.id for record in found}
    if missing:
        listed = ", ".join(map(str, sorted(missing)))
        raise HarvestStateError(
            f"not set aside in {choice.name}: {listed}; see `harvest parked list`"
        )
    return found


def requeue(
    connection: psycopg.Connection[Any],
    table: TableName,
    name: str,
    records: Sequence[Parked],
    by: str,
) -> None:
    """Put records back into the outbox, and write it down, in the caller's transaction."""
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    places = _places(Shape.read(table, rows))
    sql = _SQL["requeue"].sql(
        table=table, columns=_listed(list(places)), values=_listed(list(places.values()))
    )
    found = connection.execute(sql, {"name": name, "ids": [record.id for record in records]})
    _write_down(connection, name, records, found.rowcount, "requeued", by)


def discard(
    connection: psycopg.Connection[Any], name: str, records: Sequence[Parked], by: str
) -> None:
    """Forget records, and write it down, in the caller's transaction."""
    values = {"name": name, "ids": [record.id for record in records]}
    found = connection.execute(_SQL["discard"].text, values)
    _write_down(connection, name, records, found.rowcount, "discarded", by)


def reasons(connection: psycopg.Connection[Any], name: str) -> dict[str, int]:
    """Count the parked records by reason, most first; `COUNTED` of them, if there are more."""
    values = {"name": name, "most": COUNTED}
    return dict(connection.execute(_SQL["reasons"].text, values).fetchall())


def held_keys(connection: psycopg.Connection[Any], name: str) -> int:
    """Count the keys whose later records wait behind a parked one, of `COUNTED` records."""
    values = {"name": name, "most": COUNTED}
    row = connection.execute(_SQL["held_keys"].text, values).fetchone()
    return row[0] if row else 0


def as_text(content: bytes | None) -> str:
    """Show bytes for people: as text, with whatever can't be printed escaped."""
    text = "" if content is None else content.decode(errors="backslashreplace")
    return printable(text)


def _places(shape: Shape) -> dict[LiteralString, LiteralString]:
    """For each column of the outbox, what goes there of a parked record, in the column's type."""
    places: dict[LiteralString, LiteralString] = {
        "id": "id",
        "kafka_topic": "kafka_topic",
        "kafka_header_keys": "kafka_header_keys",
        "kafka_header_values": _HEADERS if shape.text_headers else "kafka_header_values",
    }
    contents: tuple[LiteralString, ...] = ("kafka_key", "kafka_value")
    for name in contents:
        is_text = shape.is_text(name)
        places[name] = "convert_from(" + name + ", 'UTF8')" if is_text else name
    if "create_time" in shape.columns:
        places["create_time"] = "COALESCE(create_time, parked_at)"
    if shape.has_partition:
        places["kafka_partition"] = "kafka_partition"
    return places


def _listed(parts: Sequence[LiteralString]) -> Any:  # noqa: ANN401 - Composable
    return SQL(", ").join(map(SQL, parts))


def _write_down(
    connection: psycopg.Connection[Any],
    name: str,
    records: Sequence[Parked],
    done: int,
    kind: str,
    by: str,
) -> None:
    if done != len(records):
        raise OutboxError("somebody else requeued or discarded some of these: try again")
    with connection.pipeline():
        for one in records:
            events.record(connection, name, one.shard, kind, {**_detail(one), "by": by})


def _detail(record: Parked) -> dict[str, object]:
    key = None if record.key is None else as_text(record.key)
    return {"id": record.id, "topic": record.topic, "key": key, "reason": record.reason}
