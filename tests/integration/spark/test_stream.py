"""Streams: each batch once, also when it is replayed after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from tests.integration.spark.conftest import Left, Rows

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

    def run(self, key: str | None = "stream") -> None:
        """Stash what is new."""
        read = self._spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        writer = read.parquet(str(self._files)).writeStream.format("outbox")
        writer = writer.options(url=self._database, topic="t")
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
    assert rows("SELECT key, batch, messages FROM harvest.written") == [("stream", 2, 10)]
    assert left() == (0, 0)


def test_a_checkpoint_that_is_gone(stream: Stream, rows: Rows) -> None:
    """A stream that begins anew under an old key is refused, rather than taken for a replay."""
    stream.more()
    stream.more()
    stream.run()
    stream.checkpoint.rename(stream.checkpoint.with_name("lost"))
    with pytest.raises(PySparkException, match="has committed batch 1, and now comes 0"):
        stream.run()
    assert rows(ONCE) == [(20, 20)]


def test_without_a_key(stream: Stream) -> None:
    """A stream without a key could not know its batches, and is told so."""
    stream.more()
    with pytest.raises(PySparkException, match="key: a stream needs one"):
        stream.run(key=None)
