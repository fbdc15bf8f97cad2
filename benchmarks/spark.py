"""How fast Spark stashes, against raw COPY and against Spark's own JDBC writer.

    python -m benchmarks.spark [--records N] [--rounds N] [--large N] [--json]

All write the same messages into the same table over two connections: raw COPY sends rows that are
encoded beforehand, JDBC goes with its best settings, both into a table that anybody sees half
written; ours is the whole write, with its staging and its one transaction. The large DataFrame is
written once by each.

What Spark needs to start, and what it needs of memory, is measured in processes of their own: a JVM
never gives back what a larger write has made it take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg
from pyspark.sql import DataFrame, SparkSession

from benchmarks.place import Place, place
from benchmarks.report import Result, medians, report
from benchmarks.spark_commit import commits, raw
from harvest_dagster.spark import register
from harvest_dagster.spark.classes import java_options

CONNECTIONS = 2
BATCH = 10_000
DRIVER = "org.postgresql:postgresql:42.7.8"
_RAW, _OURS, _JDBC = "raw COPY", "format('outbox')", "Spark's JDBC"

Run = Callable[[Place, int], float]


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=0, help="a second, larger DataFrame")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone is not None:
        _tell_alone(given.alone)
        return
    results = [*_start(), *_compared(given.rounds, given.records, given.large)]
    results += _memory(given.records, given.large)
    for count in filter(None, (given.records, given.large)):
        results += commits(count)
    report("spark", results, as_json=given.json)


def _start() -> list[Result]:
    seconds = _alone(0)["first task"]
    return [Result("from no session to the end of a first task", seconds, "s", target="< 6")]


def _compared(rounds: int, records: int, large: int) -> list[Result]:
    spark = _session(**{"spark.jars.packages": DRIVER})
    contenders: dict[str, Run] = {
        _RAW: raw,
        _OURS: lambda here, count: _ours(spark, here, count),
        _JDBC: lambda here, count: _jdbc(spark, here, count),
    }
    _placed(contenders[_OURS], BATCH)  # what starts for the first time is not what is measured
    results = _ratios(contenders, rounds, records)
    if large:
        results += _ratios(contenders, 1, large)
    spark.stop()
    return results


def _ratios(contenders: dict[str, Run], rounds: int, count: int) -> list[Result]:
    runs = {f"{name}, {count:,}": run for name, run in contenders.items()}
    found = medians(rounds, {n: lambda r=r: _placed(r, count) for n, r in runs.items()})  # type: ignore[misc]
    (copy, copied), (ours, rate), (jdbc, inserted) = found.items()
    return [
        Result(copy, copied, "/s"),
        Result(ours, rate, "/s", copy, rate / copied, ">= 0.7"),
        Result(jdbc, inserted, "/s"),
        Result(ours, rate, "/s", jdbc, rate / inserted, ">= 2"),
    ]


def _memory(records: int, large: int) -> list[Result]:
    """How much Spark's one process holds, driver and tasks in it, by the size of what it writes."""
    if not large:
        return []
    few, many = (_alone(count)["memory"] for count in (records, large))
    name = "Spark's peak of memory"
    of = f"{name}, {records:,}"
    return [
        Result(of, few, "MB"),
        Result(f"{name}, {large:,}", many, "MB", of, many / few, "< 1.2"),
    ]


def _alone(count: int) -> dict[str, float]:
    """Measure a session in a process of its own, which writes so many messages."""
    command = [sys.executable, "-m", "benchmarks.spark", "--alone", str(count)]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: dict[str, float] = json.loads(told)
    return found


def _tell_alone(count: int) -> None:
    began = time.perf_counter()
    spark = _session()
    spark.range(1).selectExpr("id").foreach(lambda _: None)  # a task with a Python worker
    found = {"first task": time.perf_counter() - began}
    if count:
        _placed(lambda here, records: _ours(spark, here, records), count)
    found["memory"] = _peak_of_jvm()
    print(json.dumps(found))
    spark.stop()


def _session(**more: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, Any] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        **more,
    }
    builder = SparkSession.builder.master(f"local[{CONNECTIONS}]").config(map=settings)
    session = builder.getOrCreate()
    register(session)
    return session


def _placed(run: Run, count: int) -> float:
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


def _peak_of_jvm() -> float:
    """Tell the most memory that Spark's JVM ever held, in MB."""
    (jvm,) = (p for p in psutil.Process().children(recursive=True) if p.name() == "java")
    status = Path(f"/proc/{jvm.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
