"""Databases of a test's own, and what is in their outboxes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from harvest_dagster.embedded import Servers
from harvest_dagster.outbox import Message


@contextmanager
def new_database(servers: Servers, template: str) -> Iterator[str]:
    """Give the URL of a copy of a template, which goes when the block ends."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        # Until PostgreSQL 15 it was the only way, and had no name.
        by_files = "STRATEGY FILE_COPY" if admin.info.server_version >= 150000 else ""
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE {template} {by_files}')
    try:
        yield url_of(servers, name)
    finally:
        with psycopg.connect(servers.postgres, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def url_of(servers: Servers, database: str) -> str:
    """Return the URL of another database of the same server."""
    base, _, options = servers.postgres.partition("?")
    url = f"{base.rpartition('/')[0]}/{database}"
    return f"{url}?{options}" if options else url


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


def _message(row: dict[str, Any]) -> Message:
    headers = zip(row["kafka_header_keys"], row["kafka_header_values"], strict=True)
    partition = row.get("kafka_partition")
    return Message(row["kafka_topic"], row["kafka_key"], row["kafka_value"], headers, partition)
