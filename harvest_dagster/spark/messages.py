"""Columns of a DataFrame as the columns of an outbox.

column      accepted types                          without it
topic       string                                  the option `topic`
key         string, binary                          null: order does not matter
value       string, binary; struct, map, array      (it is needed)
            become JSON as by `to_json`
headers     map<string, string|binary>, or          none
            array<struct<key, value>>
partition   byte, short, int                        Kafka's partitioner chooses
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harvest_dagster.errors import ConfigError, MessageError
from harvest_dagster.outbox.arrays import BYTEA_OID, TEXT_OID
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import HEADER_BYTES, RECORD_BYTES, RowEncoder
from harvest_dagster.outbox.table import Outbox, Shape
from harvest_dagster.spark.binary import copy_type_of, encoded, list_items, text_bytes
from harvest_dagster.spark.json_text import json_texts
from harvest_dagster.spark.staging import StagedColumn, Staging

ORDER = "order_"
"""The prefix of those columns of a staging table that only give the order."""

Fields = dict[str, pa.Array]


@dataclass(frozen=True, slots=True)
class MessageEncoder:
    """Turns batches into the columns of a staging table; Spark sends it to the tasks."""

    outbox: Outbox
    shape: Shape
    topic: str | None
    order: tuple[str, ...]

    def staging(self, name: str, schema: pa.Schema) -> Staging:
        """Return the staging table of this name that batches of this schema need."""
        given = {name.lower() for name in schema.names}
        names = self._names(given)
        kinds = [(n, copy_type_of(schema.field(_place(schema, n)).type)) for n in self.order]
        ordered = [
            StagedColumn(f"{ORDER}{at}", kind.type, kind.sorts_as)
            for at, (_, kind) in enumerate(kinds)
            if kind
        ]
        same = () if "kafka_topic" in names else (("kafka_topic", str(self.topic)),)
        return Staging(name, (*map(StagedColumn, names), *ordered), same)

    def __call__(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """Return a batch's columns as bytes; raise a MessageError for the first wrong message."""
        given = {name.lower(): batch.column(at) for at, name in enumerate(batch.schema.names)}
        fields = self._fields(given, batch.num_rows)
        self._check(fields)
        makers: dict[str, Callable[[], pa.Array]] = {
            "kafka_header_keys": lambda: self._items(fields, "header_keys", TEXT_OID),
            "kafka_header_values": lambda: self._items(fields, "header_values", self._value_oid),
            "kafka_partition": lambda: encoded(fields["partition"]),
        }
        row = [
            makers[name]() if name in makers else fields[name.removeprefix("kafka_")]
            for name in self._names(given)
        ]
        return [*row, *(encoded(given[name.lower()]) for name in self.order)]

    def _names(self, given: Collection[str]) -> list[str]:
        """Return the columns that are written; the table's defaults fill the others."""
        names = RowEncoder(self.outbox, self.shape).columns
        return [n for n in names if n != "create_time" and not self._is_left_out(n, given)]

    def _is_left_out(self, name: str, given: Collection[str]) -> bool:
        column = self.shape.columns[name]
        if name == "kafka_topic":
            return "topic" not in given and self.topic is not None
        if name.startswith("kafka_header"):
            return "headers" not in given and column.filled
        nullable = not (column.required or column.filled)
        return nullable and name == "kafka_partition" and "partition" not in given

    def _fields(self, given: Fields, count: int) -> Fields:
        """Return every column in the one type that it is encoded from."""
        topic = given.get("topic", pa.nulls(0 if self.topic is not None else count, pa.string()))
        if self.topic is not None:
            topic = pc.fill_null(topic, self.topic)
        keys, values, counts = _header_parts(given.get("headers"), count)
        return {
            "topic": text_bytes(topic),  # empty if it is the same in all rows
            "key": text_bytes(given.get("key", pa.nulls(count, pa.binary()))),
            "value": _value(given["value"]),
            "partition": given.get("partition", pa.nulls(count, pa.int32())).cast(pa.int32()),
            "header_keys": keys,
            "header_values": values,
            "header_counts": counts,
        }

    @property
    def _value_oid(self) -> int:
        return TEXT_OID if self.shape.text_headers else BYTEA_OID

    @staticmethod
    def _items(fields: Fields, name: str, oid: int) -> pa.Array:
        return list_items(fields["header_counts"], fields[name], oid)

    def _check(self, fields: Fields) -> None:
        """Raise if the table or Kafka can never take a message; no Python runs for each row."""
        for topic in pc.unique(fields["topic"]).to_pylist():
            if topic is None:
                raise MessageError(
                    "topic: it is null in a row, and there is no option `topic` to stand in for it"
                )
            Message(topic.decode(), None, None)
        suspects = pc.greater(_sizes(fields), self.outbox.max_message_bytes - RECORD_BYTES)
        suspects = pc.or_(suspects, pc.fill_null(pc.less(fields["partition"], 0), fill_value=False))
        if not self.shape.has_partition:
            suspects = pc.or_(suspects, fields["partition"].is_valid())
        if self.shape.columns["kafka_key"].required:
            suspects = pc.or_(suspects, fields["key"].is_null())
        if fields["header_keys"].null_count:
            raise MessageError("headers: a key is null; Kafka wants a string")
        found = pc.index(suspects, value=True).as_py()
        if found >= 0:
            self._refuse(fields, found)

    def _refuse(self, fields: Fields, place: int) -> None:
        """Raise the error that a stash of this message would raise."""
        key, value, partition = (
            fields[name][place].as_py() for name in ("key", "value", "partition")
        )
        topics = fields["topic"]
        topic = topics[place].as_py().decode() if len(topics) else str(self.topic)
        RowEncoder(self.outbox, self.shape).copy_row(
            Message(topic, key, value, (), partition), None
        )
        raise MessageError(
            f"headers: those of the message with key {key!r} make it too large for its topic"
        )


def check_columns(schema: pa.Schema, types: dict[str, str], topic: str | None, order: Any) -> None:  # noqa: ANN401
    """Refuse columns that are no part of a message; `types` are theirs, as Spark calls them."""
    known = {name.lower(): schema.field(at).type for at, name in enumerate(schema.names)}
    for name, type_ in known.items():
        accepted = _ACCEPTED.get(name)
        if accepted is not None and not accepted[0](type_):
            raise ConfigError(f"column {name} is {types[name]}; give {accepted[1]}")
        if accepted is None and name not in {each.lower() for each in order}:
            raise ConfigError(
                f"column {name} ({types[name]}) is no part of a message; there are"
                f" {', '.join(_ACCEPTED)}: drop it, or name it in the option `orderBy`"
            )
    if "value" not in known:
        raise ConfigError(f"there is no column value; give one that is {_ACCEPTED['value'][1]}")
    if "topic" not in known and topic is None:
        raise ConfigError("there is no column topic: give one, or the option `topic`")
    for name in order:
        if name.lower() not in known:
            raise ConfigError(f"orderBy: there is no column {name}; there are {', '.join(known)}")
        if copy_type_of(known[name.lower()]) is None or pa.types.is_nested(known[name.lower()]):
            raise ConfigError(f"orderBy: {name} is {types[name.lower()]}, which has no order")


def _place(schema: pa.Schema, name: str) -> int:
    return [each.lower() for each in schema.names].index(name.lower())


def _value(array: pa.Array) -> pa.Array:
    return text_bytes(json_texts(array) if pa.types.is_nested(array.type) else array)


def _header_parts(headers: pa.Array | None, count: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the keys of all headers, their values, and how many headers each message has."""
    if headers is None:
        nothing = pa.array([], pa.binary())
        return nothing, nothing, pa.repeat(pa.scalar(0, pa.int32()), count)
    pairs = headers.cast(pa.list_(_pair_of(headers.type)))
    counts = pc.fill_null(pc.list_value_length(pairs), 0).cast(pa.int32())
    keys, values = pc.list_flatten(pairs).flatten()
    return text_bytes(keys), text_bytes(values), counts


def _pair_of(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_map(type_):
        return pa.struct(
            [pa.field("key", type_.key_type, nullable=False), pa.field("value", type_.item_type)]
        )
    return type_.value_type


def _sizes(fields: Fields) -> pa.Array:
    size = pc.add(
        pc.fill_null(pc.binary_length(fields["key"]), 0),
        pc.fill_null(pc.binary_length(fields["value"]), 0),
    )
    counts = fields["header_counts"]
    if len(fields["header_keys"]) == 0:
        return size
    each = pc.add(
        pc.binary_length(fields["header_keys"]),
        pc.fill_null(pc.binary_length(fields["header_values"]), 0),
    )
    rows = pa.array(range(len(counts))).to_numpy().repeat(counts.to_numpy())
    table = pa.table({"row": rows, "size": pc.add(each, HEADER_BYTES)})
    sums = table.group_by("row", use_threads=False).aggregate([("size", "sum")])
    total = size.to_numpy(zero_copy_only=False).astype("int64")
    total[sums["row"].to_numpy()] += sums["size_sum"].to_numpy()
    return pa.array(total)


def _is_text(type_: pa.DataType) -> bool:
    return str(type_) in {"string", "large_string"}


def _is_bytes(type_: pa.DataType) -> bool:
    return _is_text(type_) or str(type_) in {"binary", "large_binary"}


def _is_headers(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return _is_text(type_.key_type) and _is_bytes(type_.item_type)
    if not pa.types.is_list(type_) or not pa.types.is_struct(type_.value_type):
        return False
    fields = [*type_.value_type]
    names = [field.name for field in fields]
    return names == ["key", "value"] and _is_text(fields[0].type) and _is_bytes(fields[1].type)


_ACCEPTED = {
    "topic": (_is_text, "string"),
    "key": (_is_bytes, "string or binary"),
    "value": (lambda t: _is_bytes(t) or pa.types.is_nested(t), "string, binary or a struct"),
    "headers": (_is_headers, "map<string,string|binary> or array<struct<key,value>>"),
    "partition": (lambda t: str(t) in {"int8", "int16", "int32"}, "int"),
}
