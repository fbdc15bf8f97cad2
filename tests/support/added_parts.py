"""The parts that `--with` adds to a home: which of them this machine runs, and their clients."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from obstore.store import S3Store

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.embedded.added import OFFERED

HAS_MARIADB = (platform.system(), platform.machine()) == ("Linux", "x86_64")
RUNNABLE = [name for name in OFFERED if name != "mariadb" or HAS_MARIADB]

needs_mariadb = pytest.mark.skipif(
    not HAS_MARIADB, reason="MariaDB is published for Linux on x86_64 alone: run this there"
)


@pytest.fixture(scope="session")
def with_parts(servers: Servers) -> Servers:
    """The servers that all tests share, and all parts that this machine can run."""
    return embedded.up(servers.home, parts=RUNNABLE, say=lambda _line: None)


@pytest.fixture
def bucket(servers: Servers) -> S3Store:
    """A bucket of this test's own."""
    shared = embedded.up(servers.home, parts=["s3"], say=lambda _line: None)
    return bucket_of(shared, f"test-{uuid.uuid4().hex}")


@pytest.fixture
def mariadb(servers: Servers) -> Iterator[pymysql.Connection[Any]]:
    """A connection to MariaDB, in a database of this test's own."""
    shared = embedded.up(servers.home, parts=["mariadb"], say=lambda _line: None)
    name = f"test_{uuid.uuid4().hex}"
    with mariadb_of(shared) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        yield connection
        cursor.execute(f"DROP DATABASE {name}")


def bucket_of(servers: Servers, name: str, **other: Any) -> S3Store:
    """Return a bucket, which is made when something is put into it."""
    settings: dict[str, Any] = {**servers.parts["s3"], **other}
    return S3Store(name, client_options={"allow_http": True}, **settings)


def mariadb_of(servers: Servers, **other: Any) -> pymysql.Connection[Any]:
    """Connect to MariaDB, without transactions."""
    settings: dict[str, Any] = {**servers.parts["mariadb"], **other}
    return pymysql.connect(autocommit=True, **settings)
