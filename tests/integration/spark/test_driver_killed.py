"""A driver that is killed, before, during and after its commit: all once, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import psycopg
import pytest

from harvest_dagster.spark import staging
from harvest_dagster.spark.clean import clean
from tests.support.paths import PROGRAMS
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.spark import Copies, Left, Rows

pytestmark = pytest.mark.long

WRITER = PROGRAMS / "spark_writer.py"
COUNT = 400_000
TASKS = 2
MESSAGES = "SELECT count(*) FROM outbox"
BLOCKED = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
              WHERE NOT granted AND datname = current_database()"""
BOTH = "SELECT (SELECT count(*) FROM business), (SELECT count(*) FROM outbox)"


@pytest.fixture(autouse=True)
def _business(rows: Rows) -> None:
    rows("CREATE TABLE business (id bigint PRIMARY KEY)")


@contextmanager
def driver(database: str, how: str = "transaction") -> Iterator[subprocess.Popen[str]]:
    """Start a driver; it and its JVM are gone when the block ends."""
    with subprocess.Popen(
        [sys.executable, str(WRITER), how, database, str(COUNT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a driver with its JVM and its Python workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def said(process: subprocess.Popen[str], word: str) -> None:
    """Wait until it says a word."""
    output: IO[str] | None = process.stdout
    assert output is not None
    for line in output:
        if line.strip() == word:
            return
    raise AssertionError(f"it never said {word}")


def settled(database: str) -> None:
    """Wait until PostgreSQL has noticed that the driver is gone."""
    query = """SELECT count(*) FROM pg_stat_activity
                WHERE application_name = 'harvest spark' AND datname = current_database()"""
    with psycopg.connect(database, autocommit=True) as connection:
        until(lambda: connection.execute(query).fetchone() == (0,), 30, "its connections end")


@pytest.mark.parametrize("moment", ["begun", "staged", "done"])
def test_killed_and_run_again(database: str, rows: Rows, left: Left, moment: str) -> None:
    """Killed before or after the commit, and run again: everything is there once."""
    with driver(database) as process:
        said(process, moment)
        kill(process)
    settled(database)
    assert rows(BOTH) == [(COUNT, COUNT) if moment == "done" else (0, 0)]
    assert left() <= ((0, 0) if moment == "done" else (2, 2))
    with driver(database) as process:
        said(process, "done")
    assert rows(BOTH) == [(COUNT, COUNT)]
    nothing_stays(database, left)


def test_killed_in_the_commit(database: str, rows: Rows, left: Left) -> None:
    """Killed while its one transaction waits in the middle, it has written nothing."""
    with driver(database) as process, psycopg.connect(database) as connection:
        said(process, "staged")
        connection.execute("LOCK TABLE outbox IN SHARE MODE")
        said(process, "committing")
        until(lambda: rows(BLOCKED)[0][0], 120, "the commit waits")
        kill(process)
        connection.rollback()
    settled(database)
    assert rows(BOTH) in ([(0, 0)], [(COUNT, COUNT)])  # the server may end what it was given
    with driver(database) as process:
        said(process, "done")
    assert rows(BOTH) == [(COUNT, COUNT)]
    nothing_stays(database, left)


@pytest.mark.parametrize("how", ["format", "attached"])
@pytest.mark.parametrize("moment", ["tasks", "commit", "done"])
def test_messages_alone(
    database: str, rows: Rows, left: Left, copies: Copies, how: str, moment: str
) -> None:
    """So it is with messages alone, be they moved or attached."""
    with driver(database, how) as process, psycopg.connect(database) as connection:
        if moment == "commit":
            connection.execute("LOCK TABLE outbox IN SHARE MODE")
        said(process, "done" if moment == "done" else "committing")
        if moment == "tasks":
            until(copies, 120, "tasks copy")
        elif moment == "commit":
            until(lambda: rows(BLOCKED)[0][0], 120, "the commit waits")
        kill(process)
        connection.rollback()
    settled(database)
    killed = rows(MESSAGES)
    assert killed in ([[(COUNT,)]] if moment == "done" else [[(0,)], [(COUNT,)]])
    with driver(database, how) as process:
        said(process, "done")
    assert rows(MESSAGES) == [(COUNT,)]
    nothing_stays(database, left, parts=TASKS if how == "attached" else 0)


def nothing_stays(database: str, left: Left, parts: int = 0) -> None:
    """What the dead have left goes with a later write, once they have been silent for long."""
    with staging.connect(database) as connection:
        connection.execute("UPDATE harvest.staged SET touched_at = '-infinity'")
        clean(connection)
    assert left() == (parts, 0)
