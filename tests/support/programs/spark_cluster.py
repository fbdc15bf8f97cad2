"""A Spark driver in a process of its own, on a cluster: `python spark_cluster.py HOW URL COUNT`.

killed       an executor is killed half-way through its first task
speculated   a task's first attempt hangs half-way, and Spark runs it a second time meanwhile
connect      nothing is disturbed; the session is one of Spark Connect
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from harvest_dagster.spark import transaction

_HANGS_SECONDS = 20
_SETTINGS: dict[str, Any] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.task.maxFailures": "4",
}
_SPECULATION: dict[str, Any] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
}


def main() -> None:
    """Write a table and messages in one transaction."""
    how, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    spark = _session(how)
    frame = spark.range(count, numPartitions=4).selectExpr("id")
    if how != "connect":
        frame = frame.mapInArrow(_killed if how == "killed" else _hanging, "id bigint")
    with transaction(spark, key="job", url=url) as write:
        write.append(frame, "business")
        write.stash(frame.selectExpr("string(id) AS value"), topic="t")
    spark.stop()


def _session(how: str) -> SparkSession:
    if how == "connect":
        return SparkSession.builder.remote("local[2]").getOrCreate()
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=_SETTINGS)
    if how == "speculated":
        builder = builder.config(map=_SPECULATION)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _killed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, batch in enumerate(batches):
        if place == 1 and _is_first(partition=1):
            _executor().send_signal(signal.SIGKILL)
        yield batch


def _hanging(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for place, batch in enumerate(batches):
        if place == 1 and _is_first(partition=3):
            time.sleep(_HANGS_SECONDS)
        yield batch


def _is_first(partition: int) -> bool:
    context = TaskContext.get()
    return (
        context is not None and context.partitionId() == partition and context.attemptNumber() == 0
    )


def _executor() -> psutil.Process:
    """Find the JVM whose Python worker this is."""
    return next(p for p in psutil.Process(os.getpid()).parents() if p.name() == "java")


if __name__ == "__main__":
    main()
