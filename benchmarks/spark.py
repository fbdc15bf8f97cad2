"""How fast Spark stashes, against raw COPY and against Spark's own JDBC writer.

    python -m benchmarks.spark [--records N] [--rounds N] [--large N] [--json]

All write the same messages into the same table over two connections: raw COPY sends rows that are
encoded beforehand, both of Spark's writers read what they write from Parquet that was made
beforehand. JDBC goes with its best settings, and like raw COPY into a table that anybody sees half
written; ours is the whole write, with its staging and its one transaction. The large
DataFrame is written once by each.

What Spark needs to start, and what it needs of memory, is measured in a process of its own, with a
heap of 512 MB that it has from the start: a JVM takes as much as it may before it looks for what it
could give back, and how far it has come with that would hide what a write needs beyond.
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
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import psycopg
from pyspark.sql import DataFrame, SparkSession

from benchmarks.place import Place, place
from benchmarks.report import Result, arguments, medians, report
from benchmarks.spark_commit import commits, raw
from harvest_dagster.spark import register
from harvest_dagster.spark.class_archive import java_options

CONNECTIONS = 2
BATCH = 10_000
DRIVER = "org.postgresql:postgresql:42.7.8"
_WARM = 4
"""So many times all is done before it is measured: until then the JVM compiles what it runs."""
_RAW, _OURS, _JDBC = "raw COPY", "format('outbox')", "Spark's JDBC"

Run = Callable[[Place, int], float]


def main() -> None:
    """Measure all."""
    parser = arguments(__doc__, rounds=3, records=1_000_000)
    parser.add_argument("--large", type=int, default=0, help="a second, larger DataFrame")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone is not None:
        _tell_alone(Path(given.alone), given.sizes)
        return
    with TemporaryDirectory() as folder:
        results = _measured(Path(folder), given.rounds, given.records, given.large)
    report("spark", results, as_json=given.json)


def _measured(folder: Path, rounds: int, records: int, large: int) -> list[Result]:
    sizes = [records, large] if large else [records]
    spark = _session(**{"spark.jars.packages": DRIVER})
    for count in sizes:
        _make(spark, folder, count)
    results = _compared(spark, folder, rounds, sizes)
    spark.stop()
    results += _alone(folder, sizes)
    results += commits(records, moves=True)
    if large:
        results += commits(large, moves=False)
    return results


def _compared(spark: SparkSession, folder: Path, rounds: int, sizes: list[int]) -> list[Result]:
    contenders: dict[str, Run] = {
        _RAW: raw,
        _OURS: lambda here, count: _ours(spark, folder, here, count),
        _JDBC: lambda here, count: _jdbc(spark, folder, here, count),
    }
    for _ in range(_WARM):
        for run in contenders.values():
            _placed(run, sizes[0])
    results = _ratios(contenders, rounds, sizes[0])
    for large in sizes[1:]:
        results += _ratios(contenders, 1, large)
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


def _alone(folder: Path, sizes: list[int]) -> list[Result]:
    """How long a session takes to start, and how much its one process holds, by what it writes."""
    command = [sys.executable, "-m", "benchmarks.spark", "--alone", str(folder), "--sizes"]
    command += map(str, sizes)
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: dict[str, float] = json.loads(told)
    start = found.pop("first task")
    results = [Result("from no session to the end of a first task", start, "s", target="< 6")]
    (few, least), *more = found.items()
    results += [Result(few, least, "MB")]
    return results + [Result(many, most, "MB", few, most / least, "< 1.2") for many, most in more]


def _tell_alone(folder: Path, sizes: list[int]) -> None:
    began = time.perf_counter()
    options = f"{java_options()} -Xms512m -XX:+AlwaysPreTouch"
    spark = _session(
        **{"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": options.strip()}
    )
    spark.range(1).selectExpr("id").foreach(lambda _: None)  # a task with a Python worker
    found = {"first task": time.perf_counter() - began}
    for count in sizes:
        _placed(lambda here, records: _ours(spark, folder, here, records), count)
        found[f"Spark's peak of memory, {count:,}"] = _peak_of_jvm()
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


def _make(spark: SparkSession, folder: Path, count: int) -> None:
    """Make messages beforehand, so that their making is not measured, in a file for each task."""
    frame = spark.range(count, numPartitions=CONNECTIONS)
    frame.selectExpr(
        "string(id % 1000) AS key", "rpad(string(id), 100, ' ') AS value"
    ).write.parquet(str(folder / str(count)))


def _frame(spark: SparkSession, folder: Path, count: int) -> DataFrame:
    return spark.read.parquet(str(folder / str(count)))


def _ours(spark: SparkSession, folder: Path, here: Place, count: int) -> float:
    start = time.perf_counter()
    writer = _frame(spark, folder, count).write.format("outbox").mode("append")
    writer.options(url=here.url, topic=here.topic).save()
    return time.perf_counter() - start


def _jdbc(spark: SparkSession, folder: Path, here: Place, count: int) -> float:
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
    frame = _frame(spark, folder, count).selectExpr(
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
