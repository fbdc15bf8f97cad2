"""The least that each role must be granted, what a role still lacks, and how it gets that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.names import TableName, quoted

_HARVESTS = {
    "identity": ("SELECT",),
    "migration": ("SELECT",),
    "lease": ("SELECT", "INSERT", "UPDATE"),
    "claim": ("SELECT", "INSERT", "DELETE"),
    "tour": ("SELECT", "INSERT", "UPDATE"),
    "event": ("SELECT", "INSERT", "DELETE"),
    "parked": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "retained": ("SELECT", "INSERT", "UPDATE", "DELETE"),
}
"""What the leader does with our own tables."""
_READS = dict.fromkeys(("migration", "lease", "claim", "tour", "event", "parked"), ("SELECT",))
"""What status, history and the lists show."""
_OPERATES = {
    "lease": ("UPDATE (resign)",),
    "tour": ("UPDATE (drain)",),
    "parked": ("UPDATE (requeued_at)", "DELETE"),
    "event": ("INSERT",),
}
"""What an operator does beside reading: resign, remark, requeue, discard."""
_WRITES = dict.fromkeys(("written", "staged"), ("SELECT", "INSERT", "UPDATE", "DELETE"))
"""Where Spark remembers what it has written, and what is on its way."""


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


def spark_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What Spark needs: it stashes by way of tables that are like the outbox."""
    stashes = [g for g in stasher_grants(connection, table) if g.privilege != "SELECT (id)"]
    staging = [Grant(privilege, "SCHEMA harvest_staging") for privilege in ("USAGE", "CREATE")]
    return [*stashes, Grant("SELECT", table.sql), *staging, *_own(_WRITES)]


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
    return [*grants, Grant("USAGE", "SCHEMA harvest"), *_own(_HARVESTS)]


def reader_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What whoever looks needs: messages that wait, those set aside, and what happened."""
    schema = _in_schema(_relation(connection, table))
    ours = Grant("USAGE", "SCHEMA harvest")
    return [schema, Grant("SELECT", table.sql), ours, *_own(_READS)]


def operator_grants(connection: psycopg.Connection[Any], table: TableName) -> list[Grant]:
    """What an operator needs; to requeue is to insert into the outbox."""
    reads = reader_grants(connection, table)
    return [*reads, Grant("INSERT", table.sql), *_own(_OPERATES)]


GRANTS: dict[str, Callable[[psycopg.Connection[Any], TableName], list[Grant]]] = {
    "stasher": stasher_grants,
    "spark": spark_grants,
    "harvester": harvester_grants,
    "operator": operator_grants,
    "reader": reader_grants,
}
"""The roles that there are."""


def give(connection: psycopg.Connection[Any], role: str, grants: list[Grant]) -> None:
    """Grant them to a role, in the caller's transaction."""
    if not _one(connection, "role", (role,)):
        raise OutboxError(f"there is no role {role}: make it with CREATE ROLE {quoted(role)} LOGIN")
    for grant in grants:
        connection.execute(grant.sql(role))


def lacking(connection: psycopg.Connection[Any], role: str, grants: list[Grant]) -> list[Finding]:
    """Return which of the grants a role lacks."""
    if not _one(connection, "role", (role,)):
        return [Finding(Level.ERROR, f"there is no role {role}", (f"CREATE ROLE {quoted(role)}",))]
    missing = [grant for grant in grants if not _has(connection, role, grant)]
    return [
        Finding(Level.ERROR, f"{role} lacks {grant.privilege} on {grant.on}", (grant.sql(role),))
        for grant in missing
    ]


def _has(connection: psycopg.Connection[Any], role: str, grant: Grant) -> bool:
    privilege, _, column = grant.privilege.partition(" (")
    kind, _, name = grant.on.partition(" ")
    if kind == "SEQUENCE":
        return _one(connection, "has_sequence", (role, name, privilege))
    if kind == "SCHEMA":
        return _one(connection, "has_schema", (role, name, privilege))
    if column:
        return _one(connection, "has_column", (role, grant.on, column.rstrip(")"), privilege))
    return _one(connection, "has_table", (role, grant.on, privilege))


def _relation(connection: psycopg.Connection[Any], table: TableName) -> Any:  # noqa: ANN401 - a row
    cursor = connection.cursor(row_factory=namedtuple_row)
    found = cursor.execute(CATALOGUE["relation"].text, (table.sql,)).fetchone()
    if found is None:
        raise OutboxError(
            f"there is no table {table}: make it with `harvest outbox create --outbox {table}`"
        )
    return found


def _own(needed: Mapping[str, tuple[str, ...]]) -> list[Grant]:
    return [Grant(one, f"harvest.{name}") for name, those in needed.items() for one in those]


def _in_schema(relation: Any) -> Grant:  # noqa: ANN401 - a row
    return Grant("USAGE", f"SCHEMA {relation.schema}")


def _one(connection: psycopg.Connection[Any], name: str, parameters: tuple[str, ...]) -> bool:
    row = connection.execute(CATALOGUE[name].text, parameters).fetchone()
    return bool(row and row[0])
