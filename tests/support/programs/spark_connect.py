"""Batch, stream and transaction by a client of Spark Connect: `python spark_connect.py URL FOLDER`.

With an empty URL the settings name PostgreSQL, to the client and to Spark's server. Prints what the
server's UI shows.
"""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.embedded.ports import choose
from harvest_dagster.spark import progress, register, transaction

PAGES = ("connect/", "SQL/", "StreamingQuery/", "jobs/", "environment/")


def main() -> None:
    """Write in all the ways that there are."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    given: dict[str, Any] = {"url": url} if url else {}
    port = choose(["spark"])["spark"]
    spark = _session(folder, port, redacts=bool(url))
    register(spark)
    frame = spark.range(100).selectExpr("string(id) AS value")
    for _ in range(2):
        writer = frame.write.format("outbox").mode("append")
        writer.options(topic="batch", key="batch", **given).save()
    with transaction(spark, key="both", **given) as write:
        write.append(spark.range(100), "business")
        write.stash(frame, topic="both")
    frame.write.parquet(str(folder / "files"))
    for _ in range(2):
        _stream(spark, frame, folder, given)
    _show(port)
    spark.stop()


def _stream(spark: SparkSession, frame: DataFrame, folder: Path, given: dict[str, str]) -> None:
    options = {"topic": "stream", "key": "stream", "checkpointLocation": str(folder / "state")}
    source = spark.readStream.schema(frame.schema).parquet(str(folder / "files"))
    with progress("stream", **given) as write:
        writer = source.writeStream.format("outbox").options(**options, **given)
        writer.queryName("named").trigger(availableNow=True).start().awaitTermination()
    assert write.written.messages in (100, 0)


def _session(folder: Path, port: int, *, redacts: bool) -> SparkSession:
    settings: dict[str, Any] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "log"),
        "spark.eventLog.compress": "false",
    }
    if redacts:
        settings["spark.sql.redaction.string.regex"] = r"postgres(ql)?://[^\s\"]*"
    return SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()


def _show(port: int) -> None:
    for page in PAGES:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}") as answer:
            print(answer.read().decode())  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
