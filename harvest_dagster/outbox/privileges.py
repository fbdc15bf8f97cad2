"""The least that stasher and harvester must be granted, and what a role still lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from harvest_dagster.outbox.check import Finding, Level
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName, quoted

_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
_OWN = {
    "identity": ("SELECT",),
    "migration": ("SELECT",),
    "lease": _ALL,
    "claim": _ALL,
    "tour": _ALL,
    "event": _ALL,
    "parked": _ALL,
    "retained": _ALL,
}
"""What the leader does with our own tables."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A privilege, and what it is on."""

    privilege: str
    on: str

    def sql(self, role: str) -> str:
        """The statement that gives it to a role."""
        return f"GRANT {self.privilege} ON {self.on} TO {quoted(role)}"


def stasher_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What whoever stashes needs; the id is read to tell it."""
    relation = _relation(connection, table)
    grants = [_in_schema(relation), Grant("INSERT", table.sql), Grant("SELECT (id)", table.sql)]
    if relation.sequence and not relation.identity:
        grants.append(Grant("USAGE", f"SEQUENCE {relation.sequence}"))
    return [*grants, Grant("USAGE", "SCHEMA harvest")]


def harvester_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What the leader needs."""
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    shape = Shape.read(table, rows)
    schema = _in_schema(_relation(connection, table))
    grants = [schema, Grant("SELECT", table.sql), Grant("DELETE", table.sql)]
    if "leader_id" in shape.columns:
        grants.append(Grant("UPDATE (leader_id)", table.sql))
    own = [Grant(privilege, f"harvest.{name}") for name, ps in _OWN.items() for privilege in ps]
    return [*grants, Grant("USAGE", "SCHEMA harvest"), *own]


def lacking(
    connection: psycopg.Connection[Any], table: TableName, role: str, grants: list[Grant]
) -> list[Finding]:
    """Tell which of the grants a role lacks."""
    if not _one(connection, "role", (role,)):
        return [Finding(Level.ERROR, f"there is no role {role}", (f"CREATE ROLE {quoted(role)}",))]
    missing = [grant for grant in grants if not _has(connection, table, role, grant)]
    return [
        Finding(Level.ERROR, f"{role} lacks {grant.privilege} on {grant.on}", (grant.sql(role),))
        for grant in missing
    ]


def _has(connection: psycopg.Connection[Any], table: TableName, role: str, grant: Grant) -> bool:
    privilege, _, column = grant.privilege.partition(" (")
    kind, _, name = grant.on.partition(" ")
    if kind == "SEQUENCE":
        return _one(connection, "has_sequence", (role, name, privilege))
    if kind == "SCHEMA":
        return _one(connection, "has_schema", (role, name, privilege))
    if column:
        return _one(connection, "has_column", (role, table.sql, column.rstrip(")"), privilege))
    return _one(connection, "has_table", (role, grant.on, privilege))


def _relation(connection: psycopg.Connection[Any], table: TableName) -> Any:  # noqa: ANN401 - a row
    cursor = connection.cursor(row_factory=namedtuple_row)
    return cursor.execute(CATALOGUE["relation"].text, (table.sql,)).fetchone()


def _in_schema(relation: Any) -> Grant:  # noqa: ANN401 - a row
    return Grant("USAGE", f"SCHEMA {relation.schema}")


def _one(connection: psycopg.Connection[Any], name: str, parameters: tuple[str, ...]) -> bool:
    row = connection.execute(CATALOGUE[name].text, parameters).fetchone()
    return bool(row and row[0])
