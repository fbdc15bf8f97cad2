"""Create an outbox's table, or bring one up to date; in the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg
from psycopg.sql import Composed

from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.check import check
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.migrations import Migration, is_installed, pending
from harvest_dagster.postgres.migrations import migrate as migrate_schema
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.outbox", "table.sql")


class Kind(StrEnum):
    """The two tables that we make."""

    NATIVE = "native"
    GOHARVEST = "goharvest"


@dataclass(frozen=True, slots=True)
class Created:
    """What was created, or would be: the table, if it is new, and what the schema has lacked."""

    table: TableName
    kind: Kind
    is_new: bool
    migrations: list[Migration]
    sql: list[str]

    def line(self, *, planned: bool = False) -> str:
        """Say what was done or, if it is planned, what would be."""
        would = "would " if planned else ""
        table = f"{would}create{'' if planned else 'd'} {self.table} ({self.kind})"
        said = table if self.is_new else f"{self.table} is there already"
        if self.migrations:
            versions = ", ".join(migration.number for migration in self.migrations)
            return f"{said}; {would}migrate{'' if planned else 'd'} the schema harvest: {versions}"
        return said if self.is_new else f"{said}, unchanged"


@dataclass(frozen=True, slots=True)
class Mended:
    """What was mended, or would be, and the SQL of it; and the errors that take a choice."""

    table: TableName
    findings: list[Finding]
    turned: bool
    left: list[Finding]
    sql: list[str]

    def lines(self, *, planned: bool = False) -> list[str]:
        """Say what was done or, if it is planned, what would be; and whether there was nothing."""
        mended, turned = ("would mend", "would turn") if planned else ("mended", "turned")
        said = [f"{mended}: {finding.what}" for finding in self.findings]
        said += [f"{turned} {self.table} into a table of bytes"] if self.turned else []
        return said or ([] if self.left else [f"{self.table} is up to date"])


def create(connection: psycopg.Connection[Any], table: TableName, kind: Kind) -> Created:
    """Bring the schema `harvest` up to date, and create the outbox unless it is there."""
    migrated = migrate_schema(connection)
    todo = _creation(connection, table, kind)
    _run(connection, todo)
    return _created(table, kind, migrated, todo)


def is_table(connection: psycopg.Connection[Any], table: TableName) -> bool:
    """Return whether there is a table of that name."""
    return _shape(connection, table) is not None


def begin(connection: psycopg.Connection[Any], table: TableName, *, may_create: bool) -> bool:
    """Have the schema `harvest` for a table that is there; return whether it had to be made.

    One that is there and too old is left to who upgrades. Raise an OutboxError that says what to
    run where the table is missing, or the schema, and may not be made.
    """
    if not is_table(connection, table):
        raise OutboxError(
            f"there is no table {table}: make it with `harvest outbox create --outbox {table}`"
        )
    if is_installed(connection):
        return False
    command = f"run `harvest outbox create --outbox {table}` as who owns the table"
    if not may_create:
        raise OutboxError(f"the schema harvest is missing: {command}")
    try:
        migrate_schema(connection)
    except psycopg.errors.InsufficientPrivilege:
        user = connection.info.user
        raise OutboxError(
            f"the schema harvest is missing, and {user} may not create it: {command}, and then"
            f" `harvest outbox grant {user} --as harvester --outbox {table}`"
        ) from None
    return True


def plan_create(connection: psycopg.Connection[Any], table: TableName, kind: Kind) -> Created:
    """Return what `create` would do, by looking alone."""
    return _created(table, kind, pending(connection), _creation(connection, table, kind))


def migrate(connection: psycopg.Connection[Any], table: TableName) -> list[Finding]:
    """Mend all that `check` finds and that can be mended without a choice; return what it was."""
    mended = [finding for finding in check(connection, table) if finding.safe]
    migrate_schema(connection)
    for finding in mended:
        for statement in finding.mend:
            connection.execute(statement)
    return mended


def to_native(connection: psycopg.Connection[Any], table: TableName) -> bool:
    """Turn goharvest's columns into ours, which rewrites the table; return whether it had to."""
    migrate_schema(connection)
    todo = _turning(connection, table)
    _run(connection, todo)
    return bool(todo)


def mend(connection: psycopg.Connection[Any], table: TableName, *, native: bool) -> Mended:
    """Migrate, turn the table into ours if that is asked for, and return what is left."""
    plan = plan_mend(connection, table, native=native)
    mended = migrate(connection, table)
    turned = native and to_native(connection, table)
    return Mended(table, mended, turned, _errors(check(connection, table)), plan.sql)


def plan_mend(connection: psycopg.Connection[Any], table: TableName, *, native: bool) -> Mended:
    """Return what `mend` would do, by looking alone: nothing is locked or rewritten."""
    found = check(connection, table)
    safe = [finding for finding in found if finding.safe]
    turning = _turning(connection, table) if native else []
    mends = [*_migrating(pending(connection)), *(sql for finding in safe for sql in finding.mend)]
    left = _errors([finding for finding in found if not finding.safe])
    return Mended(table, safe, bool(turning), left, [*mends, *_texts(turning)])


def _errors(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level is Level.ERROR]


def _created(
    table: TableName, kind: Kind, migrations: list[Migration], todo: list[Composed]
) -> Created:
    sql = [*_migrating(migrations), *_texts(todo)]
    return Created(table, kind, bool(todo), migrations, sql)


def _migrating(migrations: list[Migration]) -> list[str]:
    return [migration.text for migration in migrations]


def _creation(connection: psycopg.Connection[Any], table: TableName, kind: Kind) -> list[Composed]:
    if _shape(connection, table):
        return []
    place = _outside_of_harvest(connection, table)
    names = [f"create_{kind}", "settings"]
    names += ["room_for_marks"] if kind is Kind.GOHARVEST else []
    return [_SQL[name].sql(table=place) for name in names]


def _turning(connection: psycopg.Connection[Any], table: TableName) -> list[Composed]:
    shape = _shape(connection, table)
    if shape is None or not (shape.is_text("kafka_value") or shape.text_headers):
        return []
    return [_SQL["to_native"].sql(table=table)]


def _outside_of_harvest(connection: psycopg.Connection[Any], table: TableName) -> TableName:
    # To a role named harvest our own schema comes first in the search path, as "$user".
    row = connection.execute(_SQL["first_schema"].text).fetchone()
    return table if table.schema or row is None else TableName(table.table, row[0])


def _shape(connection: psycopg.Connection[Any], table: TableName) -> Shape | None:
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    return Shape.read(table, rows) if rows else None


def _texts(todo: list[Composed]) -> list[str]:
    return [statement.as_string(None) for statement in todo]


def _run(connection: psycopg.Connection[Any], todo: list[Composed]) -> None:
    for statement in todo:
        connection.execute(statement)
