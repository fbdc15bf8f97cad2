"""Migrations of the `harvest` schema: each room has a line of them, in numbered `.sql` files.

Each is applied once, all or none, in the caller's transaction, under an advisory lock, so that two
programs that start at once do not step on each other. The first line, `harvest`, made the tables of
all rooms that there were then; what came later is in the lines of the rooms.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from harvest_dagster.postgres.statements import statements
from harvest_dagster.rooms import ROOMS, folder

_SQL = statements("harvest_dagster.postgres", "migrations.sql")
_FIRST = "harvest"


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of a line."""

    room: str
    version: int
    name: str
    text: LiteralString

    @property
    def number(self) -> str:
        """Its place: 0001 in the first line, work/0001 in that of a room."""
        return f"{'' if self.room == _FIRST else f'{self.room}/'}{self.version:04}"


def migrations() -> list[Migration]:
    """Read all migrations, in their order."""
    lines = [("harvest_dagster.postgres", _FIRST)]
    lines += [(package, package.rpartition(".")[2]) for package in ROOMS]
    return [migration for package, room in lines for migration in _line(folder(package), room)]


def is_installed(connection: psycopg.Connection[Any]) -> bool:
    """Return whether there is a schema `harvest` of ours, of whatever version."""
    row = connection.execute(_SQL["installed"].text).fetchone()
    return row is not None and bool(row[0])


def pending(connection: psycopg.Connection[Any]) -> list[Migration]:
    """Return the migrations that this database has not had."""
    if not is_installed(connection):
        return migrations()
    applied = {*connection.execute(_SQL["applied"].text, (_FIRST,))}
    return [each for each in migrations() if (each.room, each.version) not in applied]


def migrate(connection: psycopg.Connection[Any], room: str | None = None) -> list[Migration]:
    """Apply what is pending, of one room or of all, and return what was applied."""
    for name in ("lock", "schema", "table"):
        connection.execute(_SQL[name].text)
    if connection.execute(_SQL["has_rooms"].text).fetchone() is None:
        connection.execute(_SQL["rooms"].text)
    todo = [each for each in pending(connection) if room in {None, each.room}]
    for each in todo:
        connection.execute(each.text)
        connection.execute(_SQL["record"].text, (each.room, each.version, each.name))
    return todo


def _line(room_folder: Path, room: str) -> list[Migration]:
    return [
        Migration(room, int(file.name[:4]), file.stem[5:], file.read_text())
        for file in sorted(room_folder.glob("migrations/*.sql"))
    ]
