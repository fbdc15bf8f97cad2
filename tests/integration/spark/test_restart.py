"""PostgreSQL is restarted, or crashes, in the middle of a write."""

from __future__ import annotations

from pathlib import Path

import psutil
import psycopg
import pytest
from pyspark.sql import SparkSession

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import transaction

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
