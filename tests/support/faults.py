"""Places to harvest at, harvests at work, and what disturbs them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from tests.support.account import judge, read
from tests.support.place import Place
from tests.support.waiting import until

BUSY = {"mark_query_records": 50, "max_in_flight_records": 200, "io_error_backoff": 0.05}
"""Limits under which a backlog takes a while, in many batches, and failures are got over soon."""
_MOMENT_SECONDS = 0.3


@pytest.fixture
def own_servers(tmp_path: Path) -> Iterator[Callable[..., Servers]]:
    """Give servers that a test may kill; they are gone when it ends."""
    yield lambda **how: embedded.up(tmp_path, say=lambda _line: None, **how)
    embedded.reset(tmp_path, say=lambda _line: None)


def _made(servers: Servers, name: str) -> Place:
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    url = f"{servers.postgres.rpartition('/')[0]}/{name}"
    with psycopg.connect(url) as connection:
        create(connection, TableName("outbox"), Kind.NATIVE)
    return Place(url, dict(servers.kafka_config))


NewPlace = Callable[[Servers, str], Place]


@pytest.fixture
def new_place() -> Iterator[NewPlace]:
    """Make places on such servers, each with a database of a name, and watched like the others."""
    with ExitStack() as readers:
        yield lambda servers, name: readers.enter_context(_made(servers, name).watched())


def processes(servers: Servers, name: str) -> list[psutil.Process]:
    """Find a server's process as it runs now, and its children after it."""
    now = embedded.status(servers.home).servers
    assert now, "the servers are up"
    (pid,) = (server.pid for server in now.each if server.name == name)
    own = psutil.Process(pid)
    return [own, *own.children(recursive=True)]


@contextmanager
def hung(servers: Servers, name: str) -> Iterator[None]:
    """Have a server that takes connections, as its kernel does it, and answers nothing."""
    family = processes(servers, name)
    for each in family:
        with suppress(psutil.NoSuchProcess):  # a session may end at any time
            each.suspend()
    yield
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.resume()


@contextmanager
def stuttering(servers: Servers, name: str, seconds: float) -> Iterator[None]:
    """Have a server that answers nothing for so long, again and again, and a moment in between."""
    over = threading.Event()

    def stutter() -> None:
        while not over.wait(_MOMENT_SECONDS):
            with hung(servers, name):
                time.sleep(seconds)

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def terminate(place: Place, whose: str = "harvest %") -> int:
    """Cut connections of harvests to this place's database; tell how many there were."""
    return len(
        place.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE %s AND datname = current_database()",
            (whose,),
        )
    )


@contextmanager
def locked(place: Place, statement: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold what a statement locks."""
    with psycopg.connect(place.postgres) as operator:
        operator.execute(statement)
        yield operator
        operator.rollback()


@contextmanager
def database_set(place: Place, servers: Servers, setting: str, value: str) -> Iterator[None]:
    """Have a setting for all sessions that begin from now on, and end those that are."""
    name = place.postgres.rpartition("/")[2]
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET {setting} = {value}")
        terminate(place)
        yield
        admin.execute(f"ALTER DATABASE {name} RESET {setting}")


def refused(place: Place, statements: int) -> None:
    """Wait until PostgreSQL has refused so many more statements, each a transaction of its own."""
    rolled_back = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    before = place.rows(rolled_back)[0][0]
    until(lambda: place.rows(rolled_back)[0][0] >= before + statements)


def settle(place: Place, delivery: str, seconds: float = 60.0) -> None:
    """Wait until all is harvested, and judge it as readers find it, meanwhile and afterwards."""
    place.drained(seconds)
    until(lambda: not place.rows("SELECT ids FROM harvest.claim"), 10)
    judge(place.stashed, read(place.kafka, place.topic), delivery)
    assert place.reader, "a place of these tests is watched"
    judge(place.stashed, place.reader.caught_up(len(place.stashed)), delivery)


def busy(place: Place, delivery: str, **changes: Any) -> dict[str, Any]:
    """Write a config with those limits."""
    return place.settings(delivery=delivery, limits=BUSY, **changes)
