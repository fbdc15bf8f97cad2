"""Spark: one session for all the assets of a run, which ends with the run."""

import os
import sys

from dagster_pyspark import LazyPySparkResource

from harvest_dagster.spark import java_options

# What Spark runs Python with is this very Python, which has harvest_dagster.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# For a cluster give spark.master, or spark.remote for Spark Connect, and leave the hosts away.
spark = LazyPySparkResource(
    spark_config={
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": java_options(),
    }
)
