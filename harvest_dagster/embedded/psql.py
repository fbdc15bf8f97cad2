"""Run psql, which the wheel with PostgreSQL brings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from psycopg.conninfo import conninfo_to_dict

from harvest_dagster.embedded.postgres_programs import wheels_programs
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harvest_dagster.embedded.server_info import Servers

VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
}


def become_psql(servers: Servers | None, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by psql, connected to the database of the servers."""
    if servers is None:
        raise EmbeddedError("no PostgreSQL was set up here: start it with `harvest dev up`")
    environment = {**os.environ, **variables(servers)}
    os.execve(wheels_programs() / "psql", ["psql", *arguments], environment)  # noqa: S606 - no shell wanted


def variables(servers: Servers) -> dict[str, str]:
    """Return the variables that libpq reads; a command line would show everybody the password."""
    settings = conninfo_to_dict(servers.postgres)
    told = {variable: str(settings[key]) for key, variable in VARIABLES.items()}
    if "sslmode" in settings:
        # This psql was built without TLS, and so takes the unix socket, which lies among the data.
        told |= {"PGHOST": str(servers.home / "postgres"), "PGPORT": str(servers.each[0].port)}
    return told
