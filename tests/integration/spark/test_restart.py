"""PostgreSQL is restarted, or crashes, in the middle of a write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import register, transaction
from tests.support.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture
def own_home(tmp_path: Path) -> Path:
    """A home for servers of this test's own."""
    return tmp_path / "home"


def crash(servers: Servers) -> None:
    """Kill PostgreSQL, without a word."""
    (pid,) = (server.pid for server in servers.each if server.name == "postgres")
    own = psutil.Process(pid)
    for process in [own, *own.children(recursive=True)]:
        process.kill()
    psutil.wait_procs([own], 10)


def test_a_crash_in_the_middle(spark: SparkSession, own_home: Path) -> None:
    """What was staged is lost with the crash: nothing is written, and the next try writes all."""
    servers = embedded.up(own_home, say=lambda _line: None)
    try:
        with psycopg.connect(servers.postgres) as connection:
            create(connection, TableName("outbox"), Kind.NATIVE)
        frame = spark.range(1000).selectExpr("string(id) AS value")
        with (  # noqa: PT012 - it is the end of the block that raises
            pytest.raises(OutboxError, match="of 1,000 rows staged for outbox there are 0"),
            transaction(spark, key="k", url=servers.postgres) as write,
        ):
            write.stash(frame, topic="t")
            crash(servers)
            embedded.up(own_home, say=lambda _line: None)
        with transaction(spark, key="k", url=servers.postgres) as write:
            write.stash(frame, topic="t")
        with psycopg.connect(servers.postgres) as connection:
            counted = connection.execute("SELECT count(*) FROM outbox").fetchone()
        assert (counted, write.written.repeated) == ((1000,), False)
    finally:
        embedded.reset(own_home, say=lambda _line: None)


COUNT = 20_000
HALF = 5
COPYING = "SELECT FROM pg_stat_progress_copy WHERE tuples_processed > 0"
ONCE = "SELECT CASE WHEN count(*) = count(DISTINCT kafka_value) THEN count(*) END FROM outbox"


@pytest.mark.usefixtures("small_batches")
def test_a_crash_while_tasks_copy(spark: SparkSession, own_home: Path, tmp_path: Path) -> None:
    """Be tasks tried again in time or not: all messages are there once, at the latest next time."""
    servers = embedded.up(own_home, say=lambda _line: None)
    flag = tmp_path / "go on"
    try:
        with psycopg.connect(servers.postgres) as connection:
            create(connection, TableName("outbox"), Kind.NATIVE)
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(write, waiting(spark, flag), servers.postgres)
            try:
                with psycopg.connect(servers.postgres, autocommit=True) as look:
                    until(lambda: look.execute(COPYING).rowcount or done.done(), 120, "tasks copy")
                crash(servers)
                flag.touch()
                embedded.up(own_home, say=lambda _line: None)
                failed = done.exception(120)
            finally:
                flag.touch()
                spark.sparkContext.cancelAllJobs()
        assert count(servers, "SELECT count(*) FROM outbox") == (0 if failed else COUNT)
        write(waiting(spark, flag), servers.postgres)
        assert count(servers, ONCE) == COUNT
    finally:
        embedded.reset(own_home, say=lambda _line: None)


def write(frame: DataFrame, url: str) -> None:
    """Write messages, whose table is attached."""
    register(frame.sparkSession)
    writer = frame.write.format("outbox").mode("append")
    writer.options(url=url, topic="t", key="k", attachFrom=1).save()


def waiting(spark: SparkSession, flag: Path) -> DataFrame:
    """Messages in two tasks, which stop in the middle until there is a file."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place, batch in enumerate(batches):
            while place == HALF and not flag.exists():
                time.sleep(0.05)
            yield batch

    # Half of them are so large that buffers on the way to PostgreSQL do not hold all back.
    frame = spark.range(COUNT, numPartitions=2).selectExpr("rpad(string(id), 1000) AS value")
    return frame.mapInArrow(pass_on, "value string")


def count(servers: Servers, query: str) -> Any:
    """Ask for one number."""
    with psycopg.connect(servers.postgres) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None
