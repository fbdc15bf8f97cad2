"""What a write is going to do, settled before its first task starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID, uuid4

import psycopg
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from harvest_dagster.errors import ConfigError
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import check_length
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark.binary import encoded, json_kind_of, kind_of
from harvest_dagster.spark.clean import clean
from harvest_dagster.spark.commit import Request, is_repeated, last_written
from harvest_dagster.spark.messages import MessageEncoder, check_columns
from harvest_dagster.spark.nested import check_types
from harvest_dagster.spark.options import Options
from harvest_dagster.spark.staging import Column, Staging, connect, create, new_name

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """Turns batches into the columns of a staging table, for rows of a business table."""

    types: dict[str, str]
    """Each column's type as Spark calls it, to name it in an error."""
    as_json: tuple[str, ...] = ()
    """Columns that are JSON in the table, where lists are no arrays."""

    def staging(self, name: str, schema: pa.Schema) -> Staging:
        """Tell what a staging table of this name must hold."""
        return Staging(name, tuple(self._column(field) for field in schema))

    def _column(self, field: pa.Field) -> Column:
        kind = json_kind_of(field.type) if field.name in self.as_json else kind_of(field.type)
        if kind is None:
            raise ConfigError(
                f"column {field.name} is {self.types[field.name.lower()]}, which can't be written:"
                " cast it to a type that PostgreSQL has"
            )
        return Column(field.name, kind.type)

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """Encode a batch."""
        named = zip(batch.schema.names, batch.columns, strict=True)
        return [encoded(column, as_json=name in self.as_json) for name, column in named]


Encoder: TypeAlias = "MessageEncoder | TableEncoder"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where tasks write, and how."""

    url: str
    write: UUID
    staging: Staging
    encoder: Encoder

    @property
    def outbox(self) -> TableName | None:
        """The outbox, if it is messages that are written."""
        return self.encoder.outbox.table if isinstance(self.encoder, MessageEncoder) else None

    def request(self, options: Options) -> Request:
        """Ask for the commit of what was staged."""
        outbox = options.outbox_table().table
        return Request(self.write, options.key, outbox, options.onRepeat, options.attachFrom)


def make_plan(options: Options, schema: StructType, *, creates: bool = True) -> Plan:
    """Check columns against options and database, and create the staging table."""
    url, write = options.postgres(), options.write or uuid4()
    with connect(url) as connection:
        encoder = encoder_of(connection, options, schema)
        staging = encoder.staging(options.into or new_name(write), arrow_schema(schema))
        planned = Plan(url, write, staging, encoder)
        if creates:
            clean(connection)
            create(connection, write, staging, planned.outbox, attaches=options.into is None)
    return planned


def arrow_schema(schema: StructType) -> pa.Schema:
    """Tell the types that batches come in; the zone of times does not matter to us."""
    return to_arrow_schema(schema, timezone="UTC")


def was_written(options: Options) -> bool:
    """Tell whether this key's write was done; raise if it must not be asked for again."""
    request = Request(uuid4(), options.key, options.outbox_table().table, options.onRepeat)
    with connect(options.postgres()) as connection:
        known = last_written(connection, request)
    return known is not None and is_repeated(known, request)


def encoder_of(
    connection: psycopg.Connection[Any], options: Options, schema: StructType
) -> Encoder:
    """Make what encodes a DataFrame's batches; a ConfigError tells what can't be."""
    check_types(schema)
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if options.stage == "rows":
        return TableEncoder(types, options.asJson)
    outbox = options.outbox_table()
    rows = connection.execute(CATALOGUE["columns"].text, (outbox.table.sql,)).fetchall()
    shape = Shape.read(outbox.table, rows)
    if options.topic is not None:
        Message(options.topic, None, None)  # which raises, if it is not legal
        check_length("topic", options.topic, shape.columns["kafka_topic"].characters)
    check_columns(arrow_schema(schema), types, options.topic, options.orderBy)
    return MessageEncoder(outbox, shape, options.topic, options.orderBy)
