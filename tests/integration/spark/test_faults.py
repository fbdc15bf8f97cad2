"""Tasks that fail, are run twice, are killed or cancelled: all messages once, or none."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import register, staging, task
from harvest_dagster.spark.binary import encoded
from harvest_dagster.spark.staging import StagedColumn, Staging
from tests.support.spark_plans import ONCE, plan_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.spark import Copies, Left, Rows, Write


def disturbed(spark: SparkSession, how: str) -> DataFrame:
    """Ten thousand messages in four tasks, each of which fails at first, half-way."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for place, batch in enumerate(batches):
            if place == 1 and context is not None and context.attemptNumber() == 0:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError(how)
            yield batch

    frame = spark.range(10_000, numPartitions=4).selectExpr("string(id) AS value")
    return frame.mapInArrow(pass_on, "value string")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("how", [pytest.param("raise", marks=pytest.mark.long), "kill"])
def test_tasks_fail_and_are_tried_again(
    spark: SparkSession, write: Write, rows: Rows, left: Left, how: str
) -> None:
    """A task that fails after half of its rows adds them once."""
    write(disturbed(spark, how), topic="t")
    assert rows(ONCE) == [(10_000, 10_000)]
    assert left() == (0, 0)


@pytest.fixture
def staged(database: str) -> Staging:
    """Stage an Arrow batch as two attempts of one task do."""
    uuid, table = uuid4(), TableName("outbox")
    place = Staging(
        staging.new_name(uuid), (StagedColumn("kafka_topic"), StagedColumn("kafka_value"))
    )
    batch = pa.record_batch({"t": pa.array(["t"] * 3), "v": pa.array(["a", "b", "c"])})
    with staging.connect(database) as connection:
        staging.create(connection, uuid, place, table)
        done = [
            task.copy(database, place, [batch], lambda b: [*map(encoded, b.columns)])
            for _ in range(2)
        ]
        staging.settle(connection, place, done[1:])
    return place


def test_the_attempt_that_lost(database: str, staged: Staging, rows: Rows) -> None:
    """Of two attempts that staged the same rows, the one that Spark took counts."""
    assert rows(f'SELECT count(*) FROM harvest_staging."{staged.name}"') == [(6,)]
    with staging.connect(database) as connection:
        attempts, count = staging.settled(connection, staged)
    assert (len(attempts), count) == (1, 3)


def test_staged_rows_are_lost(
    spark: SparkSession, database: str, rows: Rows, stashed: Stashed
) -> None:
    """Where PostgreSQL has lost what was staged, as its crash empties it, nothing is written."""
    planned, done = plan_of(spark, database)
    rows(f'TRUNCATE harvest_staging."{planned.staging.name}"')
    with staging.connect(database) as connection:  # noqa: SIM117
        with pytest.raises(Exception, match="of 3 rows staged for outbox there are 0"):
            planned.commit(connection, [done])
    assert stashed() == []
    assert rows("SELECT count(*) FROM harvest.written") == [(0,)]


def test_a_server_that_is_gone_without_a_word(database: str) -> None:
    """It is given up, but not one that only takes its time with what a task copies."""
    with staging.connect(database) as connection:
        found = connection.info.get_parameters()
    assert found["keepalives_idle"] == found["connect_timeout"] == "10"
    assert found["tcp_user_timeout"] == "120000"


def test_cancelled(
    spark: SparkSession, write: Write, rows: Rows, left: Left, copies: Copies
) -> None:
    """A job that is cancelled while it copies, as by Dagster's Terminate, leaves nothing."""
    endless = spark.range(10**12, numPartitions=2).selectExpr("string(id) AS value")

    def run() -> None:
        register(spark)
        write(endless, topic="t", key="k")

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            until(lambda: copies() or done.done(), 120, "tasks copy")
        finally:
            spark.sparkContext.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            done.result()
    assert rows("SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM harvest.written)") == [
        (0, 0)
    ]
    assert left() == (0, 0)
