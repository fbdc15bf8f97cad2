"""How messages get into one table over one connection: statements and row encoder, remembered.

A plan is made from the catalogue at a connection's first stash and kept for as long as the
connection lives. It is forgotten after any error, since the table may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from psycopg.adapt import PyFormat
from psycopg.sql import SQL, Composable, Identifier, Placeholder

from harvest_dagster.outbox.rows import RowEncoder
from harvest_dagster.outbox.table import CATALOGUE, Outbox, Shape
from harvest_dagster.postgres.statements import statements
from harvest_dagster.postgres.target import Joined, rows

STASH = statements("harvest_dagster.outbox", "stash.sql")
_COLUMNS = CATALOGUE["columns"].text.replace("%s", "%(table)s")

_plans: WeakKeyDictionary[Any, dict[Outbox, StashPlan]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class StashPlan:
    """The statements for one table, and what makes their rows."""

    outbox: Outbox
    shape: Shape
    encoder: RowEncoder
    insert: str
    returning: str
    copy: str


def plan_of(driver: object, outbox: Outbox) -> StashPlan | None:
    """Return what is remembered for a driver's connection."""
    return _plans.get(driver, {}).get(outbox)


async def make_plan(driver: object, connection: Joined, outbox: Outbox) -> StashPlan:
    """Make a plan from the catalogue, and remember it for the driver's connection."""
    shape = Shape.read(outbox.table, await rows(connection, _COLUMNS, table=outbox.table.sql))
    encoder = RowEncoder(outbox, shape)
    insert, returning, copy = (
        _statement(name, outbox, shape, encoder.columns) for name in ("insert", "returning", "copy")
    )
    plan = StashPlan(outbox, shape, encoder, insert, returning, copy)
    _plans.setdefault(driver, {})[outbox] = plan
    return plan


def forget_plans(driver: object) -> None:
    """Forget the plans of a driver's connection."""
    _plans.pop(driver, None)


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
