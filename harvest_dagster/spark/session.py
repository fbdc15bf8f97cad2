"""What a Spark session must know of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harvest_dagster.spark.source import OutboxSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know `format("outbox")`, in this thread; again is no harm."""
    spark.dataSource.register(OutboxSource)
    # Spark looks up sources in the session that is the thread's own, and this is what makes it so.
    spark.createDataFrame([], "nothing int")
