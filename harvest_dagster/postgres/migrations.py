"""Migrations of the `harvest` schema: numbered `.sql` files, each applied once, all or none.

They run in the caller's transaction, under an advisory lock, so that two programs that start
at once do not step on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

import psycopg

from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.postgres", "migrations.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`."""

    version: int
    name: str
    text: LiteralString


@cache
def migrations() -> tuple[Migration, ...]:
    """Read all migrations, in their order."""
    folder = files("harvest_dagster.postgres").joinpath("migrations")
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return tuple(
        Migration(int(file.name[:4]), file.name[5:-4], file.read_text())
        for file in sorted(found, key=lambda file: file.name)
    )


def pending(connection: psycopg.Connection[Any]) -> list[Migration]:
    """Tell which migrations this database has not had."""
    row = connection.execute(_SQL["installed"].text).fetchone()
    if row is None or not row[0]:
        return list(migrations())
    applied = {version for (version,) in connection.execute(_SQL["applied"].text)}
    return [migration for migration in migrations() if migration.version not in applied]


def migrate(connection: psycopg.Connection[Any]) -> list[Migration]:
    """Apply what is pending; tell what was applied."""
    for name in ("lock", "schema", "table"):
        connection.execute(_SQL[name].text)
    todo = pending(connection)
    for migration in todo:
        connection.execute(migration.text)
        connection.execute(_SQL["record"].text, (migration.version, migration.name))
    return todo
