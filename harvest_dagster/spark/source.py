"""`format("outbox")`: a data source for Spark, written to like any other.

Spark starts a process for each of these; none is the driver's own Python:

    planning     OutboxSource.writer()    checks columns and options, creates the staging table
    each task    write()                  copies its batches into the staging table
    the end      commit() or abort()      moves what counts, or drops it all

All of them block on PostgreSQL alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)

from harvest_dagster.errors import ConfigError, OutboxError
from harvest_dagster.spark.clean import clean, discard_all
from harvest_dagster.spark.outbox_reader import SCHEMA, OutboxReader
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import Staged, Staging, connect, discard, ensure, settle
from harvest_dagster.spark.write_plan import WritePlan, make_plan, was_written

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY_ID = "sql.streaming.queryId"


@dataclass
class Done(WriterCommitMessage):
    """What a task has staged, and where."""

    staged: Staged
    staging: Staging
    stream: str | None = None


class OutboxSource(DataSource):
    """An outbox: messages are appended in batches or streams, and read to look at them."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` is given."""
        return "outbox"

    def schema(self) -> str:
        """Return the columns that a read gives."""
        return SCHEMA[SourceOptions.read(self.options).table]

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - it is `schema()`
        """Return the reader of what waits, or of what is parked."""
        return OutboxReader(SourceOptions.read(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        """Return the writer that appends a DataFrame."""
        options = SourceOptions.read(self.options)
        if overwrite:
            raise ConfigError('an outbox is appended to: give mode("append")')
        if options.key is not None and was_written(options):
            return NothingWriter()
        planned = make_plan(options, schema)
        return StagingWriter(planned) if options.into else BatchWriter(planned)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's
    ) -> OutboxStreamWriter:
        """Return the writer that appends a stream's batches, each once."""
        options = SourceOptions.read(self.options)
        if overwrite:
            raise ConfigError('an outbox is appended to: give outputMode("append")')
        if options.key is None:
            raise ConfigError(
                "key: a stream needs one, under which its batches are known when it starts again;"
                ' give .option("key", "...")'
            )
        return OutboxStreamWriter(make_plan(options, schema, creates=False))


class NothingWriter(DataSourceArrowWriter):
    """Writes nothing, since all was written before."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Take a task's batches, as Spark demands, and do nothing with them."""
        for _ in iterator:
            pass
        return WriterCommitMessage()


@dataclass
class StagingWriter(DataSourceArrowWriter):
    """Stages rows, for a transaction to move them."""

    plan: WritePlan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's batches."""
        return Done(self.plan.stage(iterator), self.plan.staging)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Note which attempts count."""
        with connect(self.plan.url) as connection:
            settle(connection, self.plan.staging, _counted(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's
        """Drop what was staged."""
        discard_all(self.plan.url, [self.plan.staging.name])


class BatchWriter(StagingWriter):
    """Writes messages in a transaction of their own."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Move the messages, unless that was done."""
        _finish(self.plan, messages)


@dataclass
class OutboxStreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a stream in a transaction, together with the batch's number.

    Spark makes one writer for the tasks of a batch, and another for its commit. So the tasks create
    the staging table, and send its name to the commit. They send the stream's id too, which Spark
    gives to tasks alone.
    """

    plan: WritePlan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's batches."""
        plan = self.plan
        with connect(plan.url) as connection:
            ensure(connection, plan.request.write, plan.staging, plan.outbox)
        context = TaskContext.get()
        stream = context.getLocalProperty(_QUERY_ID) if context is not None else None
        return Done(plan.stage(iterator), plan.staging, stream)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Move the batch's messages, unless that was done."""
        for staging, stream in _stagings(messages):
            request = replace(self.plan.request, batch=batchId, stream=stream)
            _finish(replace(self.plan, request=request, staging=staging), messages)
        self._clean()

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Drop what was staged by the tasks that have sent its name."""
        discard_all(self.plan.url, (staging.name for staging, _ in _stagings(messages)))

    def _clean(self) -> None:
        """Drop what earlier batches have left; there may be no other writer to do it."""
        with suppress(psycopg.Error), connect(self.plan.url) as connection:
            clean(connection)


def _finish(plan: WritePlan, messages: Sequence[WriterCommitMessage | None]) -> None:
    with connect(plan.url) as connection:
        plan.commit(connection, _counted(messages))
        with suppress(psycopg.Error, OutboxError):  # the write is done, even if this fails
            discard(connection, plan.staging.name)


def _counted(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [message.staged for message in messages if isinstance(message, Done)]


def _stagings(
    messages: Sequence[WriterCommitMessage | None],
) -> set[tuple[Staging, str | None]]:
    return {(each.staging, each.stream) for each in messages if isinstance(each, Done)}
