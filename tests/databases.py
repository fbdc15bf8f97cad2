"""Databases of a test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from harvest_dagster.embedded import Servers


@contextmanager
def new_database(servers: Servers, template: str) -> Iterator[str]:
    """Give the URL of a copy of a template, which goes when the block ends."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE {template} STRATEGY FILE_COPY')
    try:
        yield url_of(servers, name)
    finally:
        with psycopg.connect(servers.postgres, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def url_of(servers: Servers, database: str) -> str:
    """Tell the URL of another database of the same server."""
    base, _, options = servers.postgres.partition("?")
    url = f"{base.rpartition('/')[0]}/{database}"
    return f"{url}?{options}" if options else url
