"""Streams: each batch once, also when it is replayed after a crash."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from harvest_dagster.spark import progress
from harvest_dagster.spark.clean import DEAD_AFTER
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.write_plan import make_plan

if TYPE_CHECKING:
    from tests.support.spark import Left, Rows, Write

ONCE = "SELECT count(*), count(DISTINCT kafka_value) FROM outbox"


class Stream:
    """Files that come in, and a query that stashes them."""

    def __init__(self, spark: SparkSession, database: str, folder: Path) -> None:
        self._spark, self._database = spark, database
        self._files, self.checkpoint = folder / "files", folder / "checkpoint"
        self._number = 0

    def more(self, count: int = 10) -> None:
        """Let a file come in."""
        start = self._number
        self._number += count
        frame = self._spark.range(start, self._number).selectExpr("string(id) AS value")
        frame.coalesce(1).write.mode("append").parquet(str(self._files))

    def run(self, key: str | None = "stream", **options: Any) -> None:
        """Stash what is new."""
        read = self._spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        writer = read.parquet(str(self._files)).writeStream.format("outbox")
        writer = writer.queryName(f"a stream {uuid.uuid4()}")  # of the UI's, and no option of ours
        writer = writer.options(url=self._database, topic="t", **options)
        if key is not None:
            writer = writer.option("key", key)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def forget_last(self) -> None:
        """Be as after a crash between our commit and Spark's own note of it."""
        commits = self.checkpoint / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.fixture
def stream(spark: SparkSession, database: str, tmp_path: Path) -> Stream:
    """A stream of this test's own."""
    return Stream(spark, database, tmp_path)


def test_each_batch_once(stream: Stream, rows: Rows, left: Left) -> None:
    """What comes in is stashed; what is replayed after a crash is not stashed again."""
    stream.more()
    stream.more()
    stream.run()
    assert rows(ONCE) == [(20, 20)]
    stream.forget_last()
    stream.run()
    assert rows(ONCE) == [(20, 20)]
    stream.more()
    stream.run()
    assert rows(ONCE) == [(30, 30)]
    written = "SELECT key, batch, messages, total FROM harvest.written"
    assert rows(written) == [("stream", 2, 10, 30)]
    assert left() == (0, 0)


def test_a_checkpoint_that_is_gone(stream: Stream, rows: Rows) -> None:
    """A stream that begins anew under an old key is refused, rather than taken for a replay."""
    stream.more()
    stream.more()
    stream.run()
    stream.checkpoint.rename(stream.checkpoint.with_name("lost"))
    with pytest.raises(PySparkException, match="has committed batch 1, and now comes batch 0"):
        stream.run()
    assert rows(ONCE) == [(20, 20)]


def test_a_checkpoint_that_is_gone_after_one_batch(stream: Stream, rows: Rows) -> None:
    """Nor is its first batch taken for the old one's first, though it has the same number."""
    stream.more()
    stream.run()
    stream.checkpoint.rename(stream.checkpoint.with_name("lost"))
    stream.more()
    with pytest.raises(PySparkException, match="batch 0 of another checkpoint"):
        stream.run()
    assert rows(ONCE) == [(10, 10)]


def test_a_batch_writes_key(stream: Stream, write: Write, spark: SparkSession) -> None:
    """A stream under the key of a batch write is refused, and the other way round."""
    frame = spark.range(1).selectExpr("'v' AS value")
    write(frame, topic="t", key="stream")
    stream.more()
    with pytest.raises(PySparkException, match="anew under another key"):
        stream.run()
    stream.checkpoint.rename(stream.checkpoint.with_name("lost"))
    stream.run(key="other")
    with pytest.raises(PySparkException, match="other is that of a stream"):
        write(frame, topic="t", key="other")


def test_it_cleans_up(stream: Stream, database: str, rows: Rows, left: Left) -> None:
    """A stream alone drops its drained parts, and what its failed batches have left."""
    options = SourceOptions.read({"url": database, "topic": "t"})
    for _ in range(2):
        stream.more()
        stream.run(attachFrom=5)
        rows("DELETE FROM outbox")
    make_plan(options, StructType().add("value", StringType()))
    rows(f"UPDATE harvest.staged SET touched_at = now() - interval '{2 * DEAD_AFTER}'")
    stream.more()
    stream.run(attachFrom=5)
    assert rows(ONCE) == [(10, 10)]
    assert left() == (1, 0)


def test_what_a_run_of_it_has_stashed(stream: Stream, database: str, rows: Rows) -> None:
    """A run tells its own batches' messages, from PostgreSQL; one without any tells nothing."""
    for batches in (1, 2, 0):
        rows("DELETE FROM outbox")
        for _ in range(batches):
            stream.more()
        with progress("stream", url=database) as write:
            stream.run()
        ((count, first, last),) = rows("SELECT count(*), min(id), max(id) FROM outbox")
        told = write.written
        assert told.messages == count == 10 * batches
        if batches == 1:
            assert (told.first_id, told.last_id) == (first, last)
        elif batches:
            assert (told.first_id or 0) <= first <= last == told.last_id


def test_it_comes_into_a_scope(stream: Stream, database: str, rows: Rows) -> None:
    """Under its old key in a scope it goes on, and tells what it has stashed since."""
    stream.more()
    stream.run("payments")
    stream.forget_last()
    stream.more()
    stream.more()
    scoped = "scope=shop key=payments"
    for messages in (20, 0):
        with progress(scoped, url=database) as write:
            stream.run(scoped)
        assert write.written.messages == messages
    assert rows(ONCE) == [(30, 30)]


def test_without_a_key(stream: Stream) -> None:
    """A stream without a key could not know its batches, and is told so."""
    stream.more()
    with pytest.raises(PySparkException, match="key: a stream needs one"):
        stream.run(key=None)
