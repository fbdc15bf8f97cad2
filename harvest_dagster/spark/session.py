"""What a Spark session must know of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harvest_dagster.spark.source import OutboxSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know `format("outbox")`; again is no harm."""
    spark.dataSource.register(OutboxSource)
