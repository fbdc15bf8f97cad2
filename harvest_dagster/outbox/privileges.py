"""The least that each role must be granted: on an outbox, and on the tables of all rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import Grant, own_grants


def stasher_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What whoever stashes needs; the id is read to tell it."""
    stashes = _stashes(connection, table)
    return [*stashes, Grant("SELECT (id)", table.sql), *own_grants("stasher")]


def spark_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What Spark needs: it stashes by way of tables that are like the outbox."""
    return [*_stashes(connection, table), Grant("SELECT", table.sql), *own_grants("spark")]


def harvester_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What the leader needs; the sequence tells it which ids may still come."""
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    shape = Shape.read(table, rows)
    relation = _relation(connection, table)
    grants = [_in_schema(relation), Grant("SELECT", table.sql), Grant("DELETE", table.sql)]
    if relation.sequence:
        grants.append(Grant("SELECT", f"SEQUENCE {relation.sequence}"))
    if "leader_id" in shape.columns:
        grants.append(Grant("UPDATE (leader_id)", table.sql))
    return [*grants, *own_grants("harvester")]


def reader_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What whoever looks needs: messages that wait, those set aside, and what happened."""
    return [*_looks(connection, table), *own_grants("reader")]


def operator_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What an operator needs, who is a reader too; to requeue is to insert into the outbox."""
    looks = _looks(connection, table)
    return [*looks, Grant("INSERT", table.sql), *own_grants("reader", "operator")]


GRANTS: dict[str, Callable[[psycopg.Connection[Any], TableName], list[Grant]]] = {
    "stasher": stasher_grants,
    "spark": spark_grants,
    "harvester": harvester_grants,
    "operator": operator_grants,
    "reader": reader_grants,
}
"""The roles that there are."""


def _stashes(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    relation = _relation(connection, table)
    grants = [_in_schema(relation), Grant("INSERT", table.sql)]
    if relation.sequence and not relation.identity:
        grants.append(Grant("USAGE", f"SEQUENCE {relation.sequence}"))
    return grants


def _looks(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    return [_in_schema(_relation(connection, table)), Grant("SELECT", table.sql)]


def _relation(connection: psycopg.Connection[Any], table: TableName) -> Any:  # noqa: ANN401 - a row
    cursor = connection.cursor(row_factory=namedtuple_row)
    found = cursor.execute(CATALOGUE["relation"].text, (table.sql,)).fetchone()
    if found is None:
        raise OutboxError(
            f"there is no table {table}: make it with `harvest outbox create --outbox {table}`"
        )
    return found


def _in_schema(relation: Any) -> Grant:  # noqa: ANN401 - a row
    return Grant("USAGE", f"SCHEMA {relation.schema}")
