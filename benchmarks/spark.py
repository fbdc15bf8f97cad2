"""How fast Spark stashes, against raw COPY and against Spark's own JDBC writer.

    python -m benchmarks.spark [--records N] [--rounds N] [--json]

All write the same messages into the same table over two connections: raw COPY sends rows that are
encoded beforehand, JDBC goes with its best settings, both into a table that anybody sees half
written; ours is the whole write, with its staging and its one transaction.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructType

from benchmarks.place import Place, place
from benchmarks.report import Result, medians, report
from harvest_dagster.spark import register
from harvest_dagster.spark.binary import HEAD, TAIL, copy_rows
from harvest_dagster.spark.classes import java_options
from harvest_dagster.spark.options import Options
from harvest_dagster.spark.plan import make_plan

CONNECTIONS = 2
BATCH = 10_000
DRIVER = "org.postgresql:postgresql:42.7.8"
_RAW, _OURS, _JDBC = "raw COPY", "format('outbox')", "Spark's JDBC"


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=0, help="a second, larger DataFrame")
    given = parser.parse_args()
    began = time.perf_counter()
    spark = _session()
    spark.range(1).count()
    first_task = time.perf_counter() - began
    contenders: dict[str, Callable[[Place, int], float]] = {
        _RAW: _raw,
        _OURS: lambda here, count: _ours(spark, here, count),
        _JDBC: lambda here, count: _jdbc(spark, here, count),
    }
    _ours_once(spark)  # what starts for the first time is not what is measured
    found = medians(
        given.rounds,
        {name: lambda run=run: _placed(run, given.records) for name, run in contenders.items()},  # type: ignore[misc]
    )
    results = [
        Result("from no session to the end of a first task", first_task, "s", target="< 6"),
        Result(_RAW, found[_RAW], "/s"),
        Result(_OURS, found[_OURS], "/s", _RAW, found[_OURS] / found[_RAW], ">= 0.7"),
        Result(_JDBC, found[_JDBC], "/s"),
        Result(_OURS, found[_OURS], "/s", _JDBC, found[_OURS] / found[_JDBC], ">= 2"),
        *_commit(spark, given.records),
    ]
    if given.large:
        before = _memory()
        rate = _placed(contenders[_OURS], given.large)
        of = f"{_OURS}, {given.records:,}"
        results.append(Result(f"{given.large:,}", rate, "/s", of, rate / found[_OURS], ""))
        results += _commit(spark, given.large)
        results.append(Result("Spark's peak of memory", _memory(), "MB", of, _memory() / before))
    report("spark", results, as_json=given.json)


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{CONNECTIONS}]")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.jars.packages": DRIVER,
        "spark.driver.extraJavaOptions": java_options(),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register(session)
    return session


def _placed(run: Callable[[Place, int], float], count: int) -> float:
    with place() as here:
        return count / run(here, count)


def _frame(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=CONNECTIONS).selectExpr(
        "string(id % 1000) AS key", "rpad(string(id), 100, ' ') AS value"
    )


def _ours(spark: SparkSession, here: Place, count: int) -> float:
    start = time.perf_counter()
    writer = _frame(spark, count).write.format("outbox").mode("append")
    writer.options(url=here.url, topic=here.topic).save()
    return time.perf_counter() - start


def _ours_once(spark: SparkSession) -> None:
    _placed(lambda here, count: _ours(spark, here, count), BATCH)


def _jdbc(spark: SparkSession, here: Place, count: int) -> float:
    server = psycopg.conninfo.conninfo_to_dict(here.url)
    url = f"jdbc:postgresql://{server['host']}:{server['port']}/{server['dbname']}"
    options = {
        "url": f"{url}?reWriteBatchedInserts=true&stringtype=unspecified",
        "user": server["user"],
        "password": server["password"],
        "dbtable": "outbox",
        "batchsize": BATCH,
        "driver": "org.postgresql.Driver",
    }
    start = time.perf_counter()
    frame = _frame(spark, count).selectExpr(
        f"'{here.topic}' AS kafka_topic",
        "binary(key) AS kafka_key",
        "binary(value) AS kafka_value",
    )
    frame.write.format("jdbc").mode("append").options(**options).save()
    return time.perf_counter() - start


def _raw(here: Place, count: int) -> float:
    """Copy what was encoded before, over as many connections as there are tasks."""
    halves = [_encoded(here, part, count // CONNECTIONS) for part in range(CONNECTIONS)]
    threads = [threading.Thread(target=_copy, args=(here, *half)) for half in halves]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _encoded(here: Place, part: int, count: int) -> tuple[str, list[memoryview]]:
    numbers = range(part * count, (part + 1) * count)
    batches: list[memoryview] = []
    columns = ""
    encode: Any = None
    for start in range(0, count, BATCH):
        some = numbers[start : start + BATCH]
        keys = pa.array([str(n % 1000) for n in some])
        values = pa.array([str(n).ljust(100) for n in some])
        batch = pa.record_batch({"key": keys, "value": values})
        if encode is None:
            encode, columns = _encoder(here)
        batches.append(memoryview(encode(batch)))
    return columns, batches


def _encoder(here: Place) -> tuple[Callable[[pa.RecordBatch], pa.Buffer], str]:
    """Make what encodes a batch as the task does, but for the number of its attempt."""
    schema = StructType().add("key", StringType()).add("value", StringType())
    planned = make_plan(Options.read({"url": here.url, "topic": here.topic}), schema, creates=False)
    names = ", ".join(column.name for column in planned.staging.columns)
    return lambda batch: copy_rows(planned.encoder(batch)), names


def _copy(here: Place, columns: str, batches: list[memoryview]) -> None:
    with (
        psycopg.connect(here.url) as connection,
        connection.cursor().copy(f"COPY outbox ({columns}) FROM STDIN (FORMAT binary)") as into,
    ):
        into.write(HEAD)
        for batch in batches:
            into.write(batch)
        into.write(TAIL)


def _commit(spark: SparkSession, count: int) -> list[Result]:
    """How long the one transaction takes, and how much WAL it and the whole write cost."""
    with place() as here, psycopg.connect(here.url, autocommit=True) as watching:
        wal = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"

        def position() -> int:
            row = watching.execute(wal).fetchone()
            return int(row[0]) if row else 0

        began, start = position(), time.perf_counter()
        moving = threading.Event()
        seconds: list[float] = []
        watcher = threading.Thread(target=_watch_commit, args=(here, moving, seconds))
        watcher.start()
        _ours(spark, here, count)
        total = time.perf_counter() - start
        moving.set()
        watcher.join()
        size = (position() - began) / count
        return [
            Result(f"commit of {count:,}", seconds[0] if seconds else 0.0, "s"),
            Result(
                f"commit's share of the write of {count:,}",
                seconds[0] / total if seconds else 0.0,
                "",
            ),
            Result("WAL for a message", size, "bytes"),
        ]


def _memory() -> float:
    """Tell the most memory that Spark's JVM ever held, in MB: driver and tasks in one."""
    (jvm,) = (p for p in psutil.Process().children(recursive=True) if p.name() == "java")
    status = Path(f"/proc/{jvm.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _watch_commit(here: Place, over: threading.Event, seconds: list[float]) -> None:
    """Watch the transaction that makes messages visible, from outside."""
    query = """SELECT extract(epoch FROM clock_timestamp() - xact_start)::float
                 FROM pg_stat_activity WHERE application_name = 'harvest spark'
                  AND query ~ '^(WITH|SELECT count|ALTER|INSERT)' AND state <> 'idle'"""
    longest = 0.0
    with psycopg.connect(here.url, autocommit=True) as connection:
        while not over.wait(0.02):
            row = connection.execute(query).fetchone()
            longest = max(longest, row[0] if row and row[0] else 0.0)
    seconds.append(longest)


if __name__ == "__main__":
    main()
