"""How messages get into one table over one connection: statements and row encoder, remembered.

A plan is made from the catalogue at a connection's first stash and kept for as long as the
connection lives. It is forgotten after any error, since the table may have changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from psycopg.adapt import PyFormat
from psycopg.sql import SQL, Composable, Identifier, Placeholder

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.record import Message, shown
from harvest_dagster.outbox.rows import RowEncoder
from harvest_dagster.outbox.table import CATALOGUE, Outbox, Shape
from harvest_dagster.postgres.statements import statements

STASH = statements("harvest_dagster.outbox", "stash.sql")
COLUMNS = CATALOGUE["columns"].text
NOW = STASH["now"].text
RETURNING_BATCH = 1000

_plans: WeakKeyDictionary[Any, dict[Outbox, Plan]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Plan:
    """The statements for one table, and what makes their rows."""

    outbox: Outbox
    shape: Shape
    encoder: RowEncoder
    insert: str
    returning: str
    copy: str


def plan_of(connection: object, outbox: Outbox) -> Plan | None:
    """Look up what is remembered for a driver's connection."""
    return _plans.get(connection, {}).get(outbox)


def make_plan(connection: object, outbox: Outbox, rows: Iterable[Sequence[Any]]) -> Plan:
    """Make and remember a plan from the rows of the statement `columns`."""
    shape = Shape.read(outbox.table, rows)
    encoder = RowEncoder(outbox, shape)
    insert, returning, copy = (
        _statement(name, outbox, shape, encoder.columns) for name in ("insert", "returning", "copy")
    )
    plan = Plan(outbox, shape, encoder, insert, returning, copy)
    _plans.setdefault(connection, {})[outbox] = plan
    return plan


def forget_plans(connection: object) -> None:
    """Forget a connection's plans."""
    _plans.pop(connection, None)


def checked(messages: Iterable[Message]) -> Iterator[Message]:
    """Pass messages on, and refuse what is none."""
    for place, message in enumerate(messages, 1):
        yield check(message, place)


def check(message: Message, place: int) -> Message:
    """Refuse what is no message, naming its place among the others."""
    if not isinstance(message, Message):
        raise MessageError(
            f"messages: number {place}, {shown(message)}, is a {type(message).__name__};"
            " give Message(topic, key, value)"
        )
    return message


def in_batches(messages: Iterator[Message], size: int) -> Iterator[list[Message]]:
    """Cut a stream of messages into lists."""
    while batch := list(islice(messages, size)):
        yield batch


async def ain_batches(messages: AsyncIterator[Message], size: int) -> AsyncIterator[list[Message]]:
    """Cut an asynchronous stream of messages into lists."""
    batch: list[Message] = []
    async for message in messages:
        batch.append(message)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _statement(name: str, outbox: Outbox, shape: Shape, columns: Sequence[str]) -> str:
    places: dict[str, Composable] = {"columns": SQL(", ").join(map(Identifier, columns))}
    if name != "copy":
        places["values"] = SQL(", ").join(_value(shape, column) for column in columns)
    return STASH[name].sql(table=outbox.table, **places).as_string(None)


def _value(shape: Shape, column: str) -> SQL | Placeholder:
    # Each parameter says its type, so that a column which has changed its own is an error.
    if column == "create_time":
        return SQL("now()")
    if column == "kafka_header_keys":
        return SQL("%s::text[]")
    if column == "kafka_header_values":
        return SQL("%s::text[]" if shape.text_headers else "%s::bytea[]")
    return Placeholder(format=PyFormat.BINARY)
