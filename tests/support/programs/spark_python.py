"""Print which Python a session's workers run: `python spark_python.py MASTER [PYTHON]`.

A PYTHON is given to the session as its setting.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from harvest_dagster.spark import register


def main() -> None:
    """Say it."""
    master, *chosen = sys.argv[1:]
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for setting in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(setting, "127.0.0.1")
    for python in chosen:
        builder = builder.config("spark.pyspark.python", python)
    spark = builder.getOrCreate()
    register(spark)
    register(spark)
    sys.stdout.write(f"{spark.sparkContext.pythonExec}\n")
    spark.stop()


if __name__ == "__main__":
    main()
