"""Reading, to look at the messages that wait in an outbox, or at those that were parked.

Each task reads a range of ids, in a snapshot of its own. While a leader empties the outbox, the
tasks see different moments. To consume messages, read Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composed
from pyspark.sql.datasource import DataSourceReader, InputPartition

from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import connect

_SQL = statements("harvest_dagster.spark", "outbox_reader.sql")
_PARKED = TableName("parked", "harvest")
_BATCH_ROWS, _BATCH_BYTES = 5_000, 32 * 1024 * 1024
_MESSAGE = (
    "id bigint, create_time timestamp, topic string, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>, partition int"
)
SCHEMA = {
    "outbox": _MESSAGE,
    "parked": f"{_MESSAGE}, harvest string, reason string, parked_at timestamp, tries int",
}
_TIME = pa.timestamp("us", "UTC")
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_FIELDS = [
    ("id", pa.int64()),
    ("create_time", _TIME),
    ("topic", pa.string()),
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("headers", _HEADERS),
    ("partition", pa.int32()),
]
_PARKED_FIELDS = [
    ("harvest", pa.string()),
    ("reason", pa.string()),
    ("parked_at", _TIME),
    ("tries", pa.int32()),
]


@dataclass
class IdRange(InputPartition):
    """The range of ids that one task reads."""

    first: int
    last: int


@dataclass
class OutboxReader(DataSourceReader):
    """Reads ranges of ids, each in a task."""

    options: SourceOptions

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ids that there are, cut into ranges of one size."""
        parked = self.options.table == "parked"
        table = _PARKED if parked else self.options.outbox_table().table
        with connect(self.options.postgres()) as connection:
            row = connection.execute(_SQL["bounds"].sql(table=table)).fetchone()
        first, last = row or (None, None)
        if first is None or last is None:
            return []
        size = -(-(last - first + 1) // self.options.partitions)
        return [
            IdRange(start, min(start + size - 1, last)) for start in range(first, last + 1, size)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range of ids."""
        if not isinstance(partition, IdRange):  # Spark reads a partition even where there are none
            return
        parked = self.options.table == "parked"
        schema = pa.schema([*_FIELDS, *(_PARKED_FIELDS if parked else [])])
        with connect(self.options.postgres()) as connection, connection.transaction():
            statement = SQL(_SQL["parked"].text).format() if parked else self._waiting(connection)
            with connection.cursor(row_factory=dict_row) as cursor:
                rows = cursor.stream(statement, (partition.first, partition.last))
                for batch in _batches(map(_with_headers, rows)):
                    yield pa.RecordBatch.from_pylist(batch, schema)

    def _waiting(self, connection: psycopg.Connection[Any]) -> Composed:
        table = self.options.outbox_table().table
        rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
        shape = Shape.read(table, rows)
        names = {name: f"kafka_{name}" for name in ("key", "value")}
        as_bytes = {
            name: SQL("convert_to({}, 'UTF8')" if shape.is_text(column) else "{}").format(
                SQL(column)
            )
            for name, column in names.items()
        }
        values = (
            "harvest.as_bytes(kafka_header_values)" if shape.text_headers else "kafka_header_values"
        )
        partition = "kafka_partition" if shape.has_partition else "NULL"
        return _SQL["outbox"].sql(
            table=table, header_values=SQL(values), partition=SQL(partition), **as_bytes
        )


def _with_headers(row: dict[str, Any]) -> dict[str, Any]:
    """Pair names with values; a record that can't be published may have more of one of them."""
    pairs = zip_longest(row.pop("header_keys") or (), row.pop("header_values") or ())
    return {**row, "headers": [{"key": key, "value": value} for key, value in pairs]}


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Gather rows into batches of few rows and few bytes, since a message may be large."""
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row["key"] or b"") + len(row["value"] or b"")
        if len(batch) == _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
