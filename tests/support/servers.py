"""PostgreSQL and Kafka for all tests.

All workers share the servers of the home `.harvest/test`: the first that needs them starts them,
the others find them running, and the end of the run throws them away. HARVEST_TEST_HOME names
another home, whose servers stay for the next run. Servers that ask for TLS are in a home beside it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
from filelock import FileLock

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from tests.support.databases import url_of
from tests.support.paths import ROOT

KEPT = os.environ.get("HARVEST_TEST_HOME")
HOME = Path(KEPT) if KEPT else ROOT / ".harvest" / "test"
SECURE_HOME = HOME.with_name(f"{HOME.name}-secure")
TEMPLATE = "template_outbox"


@pytest.fixture(scope="session")
def servers() -> Servers:
    """PostgreSQL and Kafka, running."""
    return embedded.up(HOME, say=lambda _line: None)


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """The database that each test's own is a copy of."""
    with (
        FileLock(HOME / "template.lock"),
        psycopg.connect(servers.postgres, autocommit=True) as admin,
    ):
        known = admin.execute("SELECT FROM pg_database WHERE datname = %s", (TEMPLATE,)).fetchone()
        if known is None:
            _make_template(servers, admin)
    return TEMPLATE


def _make_template(servers: Servers, admin: psycopg.Connection[Any]) -> None:
    # Nothing here need outlive the machine's crash, and databases come and go five times faster.
    admin.execute("ALTER SYSTEM SET fsync = off")
    admin.execute("SELECT pg_reload_conf()")
    draft = f"{TEMPLATE}_draft"
    admin.execute(f"DROP DATABASE IF EXISTS {draft}")
    admin.execute(f"CREATE DATABASE {draft}")
    with psycopg.connect(url_of(servers, draft)) as connection:
        create(connection, TableName("outbox"), Kind.NATIVE)
        create(connection, TableName("goharvest_outbox"), Kind.GOHARVEST)
    admin.execute(f"ALTER DATABASE {draft} RENAME TO {TEMPLATE}")
