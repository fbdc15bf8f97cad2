"""Fixtures that all tests share: one PostgreSQL and one Kafka, and for each test its own of each.

All workers share the servers of the home `.harvest/test`: the first that needs them starts them,
the others find them running, and the end of the run throws them away. HARVEST_TEST_HOME names
another home, whose servers stay for the next run. A test's database is a copy of a template in
which the schema `harvest` and an outbox stand; its topics have names that nobody else uses.

Servers that ask for TLS are in a home beside it, for the tests in `tests/integration/security`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from filelock import FileLock
from hypothesis import settings
from psycopg.rows import dict_row

from harvest_dagster import embedded
from harvest_dagster.cli import main
from harvest_dagster.embedded import Servers
from harvest_dagster.outbox import Message
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from tests.databases import new_database, url_of

ROOT = Path(__file__).resolve().parent.parent
KEPT = os.environ.get("HARVEST_TEST_HOME")
HOME = Path(KEPT) if KEPT else ROOT / ".harvest" / "test"
SECURE_HOME = HOME.with_name(f"{HOME.name}-secure")
TEMPLATE = "template_outbox"

# How long an example takes says nothing while other workers take the processor.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")

# A shell ignores Ctrl-C for what it runs in the background, and whatever that starts inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test reads the settings of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


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


@pytest.fixture
def database(servers: Servers, template: str) -> Iterator[str]:
    """The URL of a database of this test's own."""
    with new_database(servers, template) as url:
        yield url


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to this test's database."""
    with psycopg.connect(database) as connection:
        yield connection


Stashed = Callable[..., list[Message]]


@pytest.fixture
def stashed(database: str) -> Stashed:
    """Read what is committed in an outbox, as the messages that it was stashed from."""

    def read(table: str = "outbox") -> list[Message]:
        with psycopg.connect(database, row_factory=dict_row) as connection:
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY id")
            return [_message(row) for row in rows]

    return read


@pytest.fixture
def topic() -> str:
    """A topic's name that nobody else uses."""
    return f"topic-{uuid.uuid4().hex}"


Harvest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def harvest(database: str) -> Harvest:
    """Run the command `harvest` on this test's database, in this process, which is faster."""

    def run(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"HARVEST_POSTGRES": database, **environment}
        ended = CliRunner().invoke(main, words, input=stdin, env=known, catch_exceptions=False)
        return subprocess.CompletedProcess(words, ended.exit_code, ended.stdout, ended.stderr)

    return run


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the servers when the last worker is done, and throw away what the tests left in them."""
    is_worker = hasattr(session.config, "workerinput")
    for home in (HOME, SECURE_HOME):
        if not is_worker and not KEPT and home.exists():
            embedded.reset(home, say=lambda _line: None)


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


def _message(row: dict[str, Any]) -> Message:
    headers = zip(row["kafka_header_keys"], row["kafka_header_values"], strict=True)
    partition = row.get("kafka_partition")
    return Message(row["kafka_topic"], row["kafka_key"], row["kafka_value"], headers, partition)
