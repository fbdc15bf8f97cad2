"""The plan of a write, which the driver makes before its first task starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import psycopg
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.once import Request, Written, already_written
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import check_length
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark.binary import copy_type_of, encoded
from harvest_dagster.spark.clean import clean
from harvest_dagster.spark.commit import commit
from harvest_dagster.spark.messages import MessageEncoder, check_columns
from harvest_dagster.spark.moves import messages_move
from harvest_dagster.spark.nested import check_types
from harvest_dagster.spark.source_options import ATTACH_FROM, SourceOptions
from harvest_dagster.spark.staging import (
    Staged,
    StagedColumn,
    Staging,
    connect,
    create,
    new_name,
    settle,
)
from harvest_dagster.spark.task import copy

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """Turns batches into the columns of a staging table, for rows of a business table."""

    types: dict[str, str]
    """The name that Spark gives to each column's type, for errors."""
    as_json: tuple[str, ...] = ()
    """Columns that are JSON in the table, so that lists become JSON and not arrays."""

    def staging(self, name: str, schema: pa.Schema) -> Staging:
        """Return the staging table of this name that batches of this schema need."""
        return Staging(name, tuple(self._column(field) for field in schema))

    def _column(self, field: pa.Field) -> StagedColumn:
        kind = copy_type_of(field.type, as_json=field.name in self.as_json)
        if kind is None:
            raise ConfigError(
                f"column {field.name} is {self.types[field.name.lower()]}, which can't be written:"
                " cast it to a type that PostgreSQL has"
            )
        return StagedColumn(field.name, kind.type)

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """Return a batch's columns as bytes."""
        named = zip(batch.schema.names, batch.columns, strict=True)
        return [encoded(column, as_json=name in self.as_json) for name, column in named]


Encoder: TypeAlias = "MessageEncoder | TableEncoder"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Where tasks write, and how; Spark sends it to them."""

    url: str
    request: Request
    staging: Staging
    encoder: Encoder
    attach_from: int | None
    """From so many messages on a table is attached; None if a transaction moves what is staged."""

    @property
    def outbox(self) -> TableName | None:
        """The outbox, if messages are written."""
        return self.encoder.outbox.table if isinstance(self.encoder, MessageEncoder) else None

    def stage(self, batches: Iterable[pa.RecordBatch]) -> Staged:
        """Stage a task's batches."""
        return copy(self.url, self.staging, batches, self.encoder, self.attach_from)

    def commit(self, connection: psycopg.Connection[Any], staged: Sequence[Staged]) -> Written:
        """Move the messages that tasks have staged into the outbox, unless that was done."""
        settle(connection, self.staging, staged)
        encoder = cast("MessageEncoder", self.encoder)
        move = messages_move(self.staging, encoder, staged, self.attach_from or ATTACH_FROM)
        return commit(connection, self.request, [move])


def make_plan(options: SourceOptions, schema: StructType, *, creates: bool = True) -> WritePlan:
    """Check columns against options and database, create the staging table, and return the plan."""
    url, request = options.postgres(), options.request()
    is_alone = options.into is None
    with connect(url) as connection:
        encoder = encoder_of(connection, options, schema)
        staging = encoder.staging(options.into or new_name(request.write), arrow_schema(schema))
        attach_from = options.attachFrom if is_alone else None
        planned = WritePlan(url, request, staging, encoder, attach_from)
        if creates:
            clean(connection)
            create(connection, request.write, staging, planned.outbox, attaches=is_alone)
    return planned


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of the batches; the zone of times does not matter to us."""
    return to_arrow_schema(schema, timezone="UTC")


def was_written(options: SourceOptions) -> bool:
    """Return whether a write of this key was done; raise if it must not be asked for again."""
    with connect(options.postgres()) as connection:
        return already_written(connection, options.request()) is not None


def encoder_of(
    connection: psycopg.Connection[Any], options: SourceOptions, schema: StructType
) -> Encoder:
    """Return what encodes a DataFrame's batches; raise a ConfigError if they can't be written."""
    check_types(schema)
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if options.stage == "rows":
        return TableEncoder(types, options.asJson)
    outbox = options.outbox_table()
    rows = connection.execute(CATALOGUE["columns"].text, (outbox.table.sql,)).fetchall()
    shape = Shape.read(outbox.table, rows)
    if options.topic is not None:
        Message(options.topic, None, None)  # raises if the topic is not legal
        check_length("topic", options.topic, shape.columns["kafka_topic"].characters)
    check_columns(arrow_schema(schema), types, options.topic, options.orderBy)
    return MessageEncoder(outbox, shape, options.topic, options.orderBy)
