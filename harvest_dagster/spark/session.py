"""Make `format("outbox")` known to a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harvest_dagster.spark.source import OutboxSource
from harvest_dagster.spark.workers_python import choose_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("outbox")` known to a session, in this thread; to do it again does no harm.

    Where Spark runs on this machine, its workers run this very Python, unless one was chosen.
    """
    choose_python(spark)
    spark.dataSource.register(OutboxSource)
    # Spark looks up sources in the thread's own session, which this makes the given one.
    spark.createDataFrame([], "nothing int")
