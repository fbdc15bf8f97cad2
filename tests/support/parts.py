"""Large writes of Spark's, whose tables become parts of the outbox, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from harvest_dagster.ledger.once import Written
from harvest_dagster.spark import staging, task
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import Staged
from harvest_dagster.spark.write_plan import WritePlan, make_plan

COUNT = 1000
SCHEMA = StructType().add("key", StringType()).add("value", StringType())
PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'outbox'::regclass"


def plan(url: str, topic: str = "t") -> WritePlan:
    """Plan a write that attaches what it stages, however little."""
    return make_plan(SourceOptions.read({"url": url, "topic": topic}), SCHEMA)


def stage(
    planned: WritePlan, first: int, count: int, attach_from: int | None = None, **how: int
) -> Staged:
    """Stage messages that count, as a task does; from a number on in a table of its own."""
    numbers = [str(number) for number in range(first, first + count)]
    batch = pa.record_batch({"key": pa.array(["part"] * count), "value": pa.array(numbers)})
    return task.copy(planned.url, planned.staging, [batch], planned.encoder, attach_from, **how)


def finish(planned: WritePlan, *done: Staged, attach_from: int = 1) -> Written:
    """Commit what was staged."""
    with staging.connect(planned.url) as connection:
        written = replace(planned, attach_from=attach_from).commit(connection, done)
        staging.discard(connection, planned.staging.name)
    return written
