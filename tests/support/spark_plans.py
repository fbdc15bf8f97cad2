"""A write of Spark's that is planned and staged, and not committed yet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from harvest_dagster.spark import task
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.write_plan import make_plan

ONCE = "SELECT count(*), count(DISTINCT kafka_value) FROM outbox"


def plan_of(spark: SparkSession, database: str) -> Any:
    """Plan a write, and stage three messages for it."""
    frame = spark.range(3).selectExpr("string(id) AS value")
    planned = make_plan(
        SourceOptions.read({"url": database, "topic": "t", "key": "k"}), frame.schema
    )
    batch = pa.record_batch({"value": pa.array(["0", "1", "2"])})
    done = task.copy(database, planned.staging, [batch], planned.encoder)
    return planned, done
