"""Create an outbox's table, or bring one up to date; in the caller's transaction."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import psycopg
from psycopg.sql import Composed

from harvest_dagster.outbox.check import Finding, check
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.migrations import migrate as migrate_schema
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.outbox", "table.sql")


class Kind(StrEnum):
    """The two tables that we make."""

    NATIVE = "native"
    GOHARVEST = "goharvest"


def create(connection: psycopg.Connection[Any], table: TableName, kind: Kind) -> bool:
    """Create the `harvest` schema and the outbox; tell whether the table is new."""
    migrate_schema(connection)
    if _shape(connection, table):
        return False
    place = _outside_of_harvest(connection, table)
    _run(connection, f"create_{kind}", place)
    _run(connection, "settings", place)
    if kind is Kind.GOHARVEST:
        _run(connection, "room_for_marks", place)
    return True


def migrate(connection: psycopg.Connection[Any], table: TableName) -> list[Finding]:
    """Mend all that `check` finds and that can be mended without a choice; tell what it was."""
    mended = [finding for finding in check(connection, table) if finding.safe]
    migrate_schema(connection)
    for finding in mended:
        for statement in finding.mend:
            connection.execute(statement)
    return mended


def to_native(connection: psycopg.Connection[Any], table: TableName) -> bool:
    """Turn goharvest's columns into ours, which rewrites the table; tell whether it was needed."""
    migrate_schema(connection)
    shape = _shape(connection, table)
    if shape is None or not (shape.is_text("kafka_value") or shape.text_headers):
        return False
    _run(connection, "to_native", table)
    return True


def _outside_of_harvest(connection: psycopg.Connection[Any], table: TableName) -> TableName:
    # To a role named harvest our own schema comes first in the search path, as "$user".
    row = connection.execute(_SQL["first_schema"].text).fetchone()
    return table if table.schema or row is None else TableName(table.table, row[0])


def _shape(connection: psycopg.Connection[Any], table: TableName) -> Shape | None:
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    return Shape.read(table, rows) if rows else None


def _run(connection: psycopg.Connection[Any], name: str, table: TableName) -> None:
    statement: Composed = _SQL[name].sql(table=table)
    connection.execute(statement)
