"""A Spark driver for a test to kill: `python spark_writer.py HOW URL COUNT`.

transaction   a table and messages
format        messages alone, by `format("outbox")`
attached      likewise, so many that their table is attached
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from harvest_dagster.spark import register, transaction


def main() -> None:
    """Write, and say how far it is."""
    how, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for setting in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(setting, "127.0.0.1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    _say("begun")
    if how == "transaction":
        _together(spark, url, count)
    else:
        _alone(spark, url, count, attach_from=1 if how == "attached" else count + 1)
    _say("done")


def _together(spark: SparkSession, url: str, count: int) -> None:
    with transaction(spark, key="job", url=url) as write:
        write.append(spark.range(count).selectExpr("id"), "business")
        _say("staged")
        write.stash(spark.range(count).selectExpr("string(id) AS value"), topic="t")
        _say("committing")


def _alone(spark: SparkSession, url: str, count: int, attach_from: int) -> None:
    register(spark)
    writer = spark.range(count).selectExpr("string(id) AS value").write.format("outbox")
    options: dict[str, Any] = {"url": url, "topic": "t", "key": "job", "attachFrom": attach_from}
    _say("committing")
    writer.mode("append").options(**options).save()


def _say(word: str) -> None:
    print(word, flush=True)  # noqa: T201 - the test waits for it


if __name__ == "__main__":
    main()
