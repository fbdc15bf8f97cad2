"""What is wrong with an outbox's table, and the SQL that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.sql import Literal

from harvest_dagster.outbox.table import CATALOGUE, Column
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.migrations import pending
from harvest_dagster.postgres.names import TableName, quoted
from harvest_dagster.postgres.statements import statements

_TEXT = ("text", "character varying")
_TYPES: dict[str, tuple[str, ...]] = {
    "id": ("bigint", "integer"),
    "create_time": ("timestamp with time zone",),
    "kafka_topic": _TEXT,
    "kafka_key": ("bytea", *_TEXT),
    "kafka_value": ("bytea", *_TEXT),
    "kafka_header_keys": ("text[]", "character varying[]"),
    "kafka_header_values": ("bytea[]", "text[]", "character varying[]"),
}
_OPTIONAL: dict[str, tuple[str, ...]] = {"kafka_partition": ("integer",), "leader_id": ("uuid",)}
_SQL = statements("harvest_dagster.outbox", "table.sql")
_OWN_SEQUENCE = ("drop_id_default", "require_id", "add_identity", "go_on_after_ids")


def check(connection: psycopg.Connection[Any], table: TableName) -> list[Finding]:
    """Look at everything that stash and harvest count on."""
    findings = list(_schema(connection))
    cursor = connection.cursor(row_factory=namedtuple_row)
    relation = cursor.execute(CATALOGUE["relation"].text, (table.sql,)).fetchone()
    if relation is None:
        create = f"harvest outbox create --outbox {table}"
        return [*findings, Finding(Level.ERROR, f"there is no table {table}: run `{create}`")]
    columns = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    findings += _columns(table, {row[0]: Column(*row) for row in columns})
    return [*findings, *_relation(table, relation)]


def _schema(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    todo = pending(connection)
    if todo:
        names = ", ".join(f"{migration.number} {migration.name}" for migration in todo)
        yield Finding(
            Level.ERROR,
            f"the schema harvest lacks {names}: run `harvest outbox migrate`",
            safe=True,
        )


def _columns(table: TableName, columns: dict[str, Column]) -> Iterator[Finding]:
    for name, types in _TYPES.items():
        yield from _column(table, columns.get(name), name, types)
    for name, types in _OPTIONAL.items():
        if name in columns:
            yield from _column(table, columns[name], name, types)
    if "kafka_partition" not in columns:
        yield Finding(
            Level.NOTE,
            "messages can't name their partition",
            (f"ALTER TABLE {table.sql} ADD COLUMN kafka_partition integer",),
        )
    for column in columns.values():
        if column.name not in _TYPES and column.required and not column.filled:
            yield Finding(
                Level.ERROR,
                f"column {column.name} is NOT NULL and has no default, so no message gets in",
                (f"ALTER TABLE {table.sql} ALTER COLUMN {quoted(column.name)} DROP NOT NULL",),
            )


def _column(
    table: TableName, column: Column | None, name: str, types: tuple[str, ...]
) -> Iterator[Finding]:
    if column is None:
        empty = " NOT NULL DEFAULT '{}'" if name.startswith("kafka_header") else ""
        yield Finding(
            Level.ERROR,
            f"column {name} is missing",
            (f"ALTER TABLE {table.sql} ADD COLUMN {name} {types[0]}{empty}",),
        )
    elif column.type not in types:
        yield Finding(
            Level.ERROR,
            f"column {name} is {column.type}, and should be {' or '.join(types)}",
            _turn(table, column, types[0]),
        )


def _turn(table: TableName, column: Column, wanted: str) -> tuple[str, ...]:
    name = column.name
    if column.type.endswith("[]") != wanted.endswith("[]"):
        return ()
    if wanted == "bytea":
        using = f"convert_to({name}::text, 'UTF8')"
    elif wanted == "bytea[]":
        using = f"harvest.as_bytes({name}::text[])"
    elif column.type == "bytea":
        using = f"convert_from({name}, 'UTF8')::{wanted}"
    else:
        using = f"{name}::{wanted}"
    return (f"ALTER TABLE {table.sql} ALTER COLUMN {name} TYPE {wanted} USING {using}",)


def _relation(table: TableName, relation: Any) -> Iterator[Finding]:  # noqa: ANN401 - a row
    if relation.kind not in {"r", "p"}:
        yield Finding(Level.ERROR, f"{table} is a view or foreign table; an outbox is a table")
        return
    if not relation.unique_id:
        mend = f"ALTER TABLE {table.sql} ADD PRIMARY KEY (id)"
        yield Finding(Level.ERROR, "id has no primary key, so each pass reads all rows", (mend,))
    if relation.sequence is None:
        places: dict[str, Any] = {"table": table, "table_text": Literal(table.sql)}
        mends = tuple(_SQL[name].sql(**places).as_string(None) for name in _OWN_SEQUENCE)
        yield Finding(Level.ERROR, "id has no sequence of its own to draw from", mends)
    elif relation.cache > 1:
        yield Finding(
            Level.WARNING,
            f"the sequence caches {relation.cache} ids a session, so ids are out of order",
            (f"ALTER SEQUENCE {relation.sequence} CACHE 1",),
            safe=True,
        )
    yield from _storage(table, relation)


def _storage(table: TableName, relation: Any) -> Iterator[Finding]:  # noqa: ANN401 - a row
    if "autovacuum_vacuum_scale_factor=0" not in relation.options and relation.kind == "r":
        yield Finding(
            Level.WARNING,
            "autovacuum waits for a share of the table, so dead rows pile up behind the head",
            (_SQL["settings"].sql(table=table).as_string(None),),
            safe=True,
        )
    if relation.unlogged:
        mend = f"ALTER TABLE {table.sql} SET LOGGED"
        yield Finding(Level.ERROR, "the table is UNLOGGED: a crash empties it", (mend,))
    if relation.row_security:
        what = "row level security is on: the harvester must see every row"
        mend = f"ALTER TABLE {table.sql} DISABLE ROW LEVEL SECURITY"
        yield Finding(Level.WARNING, what, (mend,))
    if relation.triggers:
        yield Finding(Level.NOTE, "triggers run for each message, and again when it is purged")
