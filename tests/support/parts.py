"""Large writes of Spark's, whose tables become parts of the outbox, without Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from harvest_dagster.spark import staging, task
from harvest_dagster.spark.commit import Written, commit
from harvest_dagster.spark.moves import messages_move
from harvest_dagster.spark.options import Options
from harvest_dagster.spark.plan import Plan, make_plan
from harvest_dagster.spark.staging import Staged

COUNT = 1000
SCHEMA = StructType().add("key", StringType()).add("value", StringType())
PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'outbox'::regclass"


def plan(url: str, topic: str = "t") -> Plan:
    """Plan a write that attaches what it stages, however little."""
    return make_plan(Options.read({"url": url, "topic": topic}), SCHEMA)


def stage(
    planned: Plan, first: int, count: int, attach_from: int | None = None, **how: int
) -> Staged:
    """Stage messages that count, as a task does; from a number on in a table of its own."""
    numbers = [str(number) for number in range(first, first + count)]
    batch = pa.record_batch({"key": pa.array(["part"] * count), "value": pa.array(numbers)})
    return task.copy(planned.url, planned.staging, [batch], planned.encoder, attach_from, **how)


def finish(planned: Plan, *done: Staged, attach_from: int = 1) -> Written:
    """Commit what was staged."""
    request = planned.request(Options.read({"url": planned.url, "attachFrom": str(attach_from)}))
    with staging.connect(planned.url) as connection:
        staging.settle(connection, planned.staging, done)
        move = messages_move(planned.staging, planned.encoder, done)  # type: ignore[arg-type]
        written = commit(connection, request, [move])
        staging.discard(connection, planned.staging.name)
    return written
