"""Grants: what the rooms grant to a role, how it gets that, and what it still lacks.

Each room says in its `grants.toml` what each role may do with the room's own tables:

    [harvester]
    lease = ["SELECT", "INSERT", "UPDATE"]

A name there is a table of the schema `harvest`, or `"SCHEMA ..."`. The file is read without
importing the room.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.names import quoted
from harvest_dagster.postgres.statements import statements
from harvest_dagster.rooms import ROOMS, folder

_SQL = statements("harvest_dagster.postgres", "privileges.sql")


@dataclass(frozen=True, slots=True)
class Grant:
    """A privilege, and what it is on."""

    privilege: str
    on: str

    def sql(self, role: str) -> str:
        """The statement that gives it to a role."""
        return f"GRANT {self.privilege} ON {self.on} TO {quoted(role)}"


def own_grants(*roles: str) -> list[Grant]:
    """Return what all rooms grant to a role, or to one that is several in one."""
    grants = [Grant("USAGE", "SCHEMA harvest")]
    for package in ("harvest_dagster.postgres", *ROOMS):
        of_room = room_grants(package)
        grants += [grant for role in roles for grant in of_room.get(role, [])]
    return grants


def room_grants(package: str) -> dict[str, list[Grant]]:
    """Read what one room grants to each role."""
    file = folder(package) / "grants.toml"
    roles = tomllib.loads(file.read_text()) if file.exists() else {}
    return {
        role: [Grant(one, _on(name)) for name, those in named.items() for one in those]
        for role, named in roles.items()
    }


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


def _on(name: str) -> str:
    return name if " " in name else f"harvest.{name}"


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


def _one(connection: psycopg.Connection[Any], name: str, parameters: tuple[str, ...]) -> bool:
    row = connection.execute(_SQL[name].text, parameters).fetchone()
    return bool(row and row[0])
