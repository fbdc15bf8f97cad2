"""A cluster: executors in processes of their own, of which some are killed or too slow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tests.support.paths import PROGRAMS

if TYPE_CHECKING:
    from tests.support.spark import Left, Rows

CLIENT = PROGRAMS / "spark_connect.py"
DRIVER = PROGRAMS / "spark_cluster.py"
COUNT = 20_000
LONGEST_SECONDS = 300


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=pytest.mark.long) for how in ("killed", "speculated")]
)
def test_executors(database: str, rows: Rows, left: Left, how: str) -> None:
    """Killed executors and speculation add every row, and every message, once."""
    rows("CREATE TABLE business (id bigint)")
    drive(how, database)
    for table, column in (("business", "id"), ("outbox", "kafka_value")):
        found = rows(f"SELECT count(*), count(DISTINCT {column}) FROM {table}")
        assert found == [(COUNT, COUNT)], table
    assert left() == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("named", ["by its settings", "by an option"])
def test_all_ways_over_connect(database: str, rows: Rows, tmp_path: Path, named: str) -> None:
    """Batches, streams and transactions over Spark Connect write once, and show no password."""
    rows("CREATE TABLE business (id bigint PRIMARY KEY)")
    folder = tmp_path / "spark"
    (folder / "log").mkdir(parents=True)
    pages = subprocess.run(
        [sys.executable, str(CLIENT), "" if "settings" in named else database, str(folder)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "HARVEST_POSTGRES": database},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=LONGEST_SECONDS,
    ).stdout
    topics = "SELECT kafka_topic, count(*) FROM outbox GROUP BY 1 ORDER BY 1"
    assert rows(topics) == [("batch", 100), ("both", 100), ("stream", 100)]
    assert rows("SELECT count(*) FROM business") == [(100,)]
    logs = [file.read_text() for file in folder.glob("log/**/[!.]*") if file.is_file()]
    password = sa.make_url(database).password
    assert password
    assert "SparkListenerConnectOperationStarted" in "".join(logs)
    assert [password in shown for shown in (pages, *logs)] == [False] * (1 + len(logs))


@pytest.mark.long
def test_connect(database: str, rows: Rows, left: Left) -> None:
    """Over Spark Connect a table and its messages are written as well."""
    rows("CREATE TABLE business (id bigint PRIMARY KEY)")
    drive("connect", database)
    both = "SELECT (SELECT count(*) FROM business), (SELECT count(*) FROM outbox)"
    assert rows(both) == [(COUNT, COUNT)]
    assert left() == (0, 0)


def drive(how: str, database: str) -> None:
    """Run a driver to its end."""
    subprocess.run(
        [sys.executable, str(DRIVER), how, database, str(COUNT)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=True,
        timeout=LONGEST_SECONDS,
    )
