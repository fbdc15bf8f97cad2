"""Write with Spark's UI on, and print what it shows: `python spark_ui.py URL`."""

from __future__ import annotations

import sys
import urllib.request

from pyspark.sql import SparkSession

from harvest_dagster.spark import register, transaction


def main() -> None:
    """Write, and print pages and API."""
    url = sys.argv[1]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.port", "0")
    for setting in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(setting, "127.0.0.1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("INFO")
    register(spark)
    frame = spark.range(10).selectExpr("string(id) AS value")
    frame.write.format("outbox").mode("append").options(url=url, topic="t").save()
    with transaction(spark, url=url) as write:
        write.stash(frame, topic="t")
    context = spark.sparkContext
    base, api = context.uiWebUrl, f"api/v1/applications/{context.applicationId}"
    for page in (
        "SQL/execution/?id=0",
        "SQL/execution/?id=1",
        "environment/",
        "jobs/",
        "stages/",
        f"{api}/sql?details=true&planDescription=true",
        f"{api}/environment",
        f"{api}/jobs",
        f"{api}/stages?details=true",
    ):
        with urllib.request.urlopen(f"{base}/{page}") as answer:  # noqa: S310 - loopback
            print(answer.read().decode())  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
