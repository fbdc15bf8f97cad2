"""A Spark driver in a process of its own, for a test to kill: `python writer.py URL COUNT`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from harvest_dagster.spark import transaction


def main() -> None:
    """Write a table and messages in one transaction."""
    url, count = sys.argv[1], int(sys.argv[2])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for setting in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(setting, "127.0.0.1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print("begun", flush=True)  # noqa: T201 - the test waits for it
    with transaction(spark, key="job", url=url) as write:
        write.append(spark.range(count).selectExpr("id"), "business")
        print("staged", flush=True)  # noqa: T201
        write.stash(spark.range(count).selectExpr("string(id) AS value"), topic="t")
        print("committing", flush=True)  # noqa: T201
    print("done", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
