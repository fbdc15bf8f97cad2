"""Arrow batches as PostgreSQL's binary COPY, by Arrow's own kernels: no Python code for each row.

A row of binary COPY is the number of its fields, and for each field its length and its bytes, so a
batch of rows is one long join of byte strings. Arrow joins columns of bytes element by element into
one column, whose buffer then *is* the rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harvest_dagster.spark.json_text import json_texts

HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TAIL = struct.pack("!h", -1)
SLICE_BYTES = 32 * 1024 * 1024
"""So much is encoded at once: the buffer of a column of bytes can't grow past 2 GB."""

_EPOCH_DAYS = 10_957
_EPOCH_MICROSECONDS = _EPOCH_DAYS * 86_400_000_000
_NULL = -1

Bytes: TypeAlias = "pa.Array | pa.Scalar"


@dataclass(frozen=True, slots=True)
class CopyType:
    """A type of PostgreSQL, and how values of an Arrow type are encoded as it."""

    type: LiteralString
    oid: int
    encode: Callable[[pa.Array], pa.Array]
    sorts_as: LiteralString = ""
    """What an ORDER BY adds to the column, so that PostgreSQL sorts it as Spark does."""


def slices(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Cut a batch into pieces that are each encoded at once."""
    if batch.num_rows == 0:
        return []
    rows = max(1, batch.num_rows * SLICE_BYTES // max(batch.nbytes, 1))
    return [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]


def copy_rows(fields: Sequence[pa.Array], first: bytes | None = None) -> pa.Buffer:
    """Return the rows of these fields, arrays of bytes or nulls; `first` begins every row."""
    head = struct.pack("!h", len(fields) + (first is not None))
    if first is not None:
        head += struct.pack("!i", len(first)) + first
    parts: list[Bytes] = [pa.scalar(head)]
    for field in fields:
        parts += [_lengths(field), _filled(field)]
    return _content(_joined(parts))


def copy_type_of(type_: pa.DataType, *, as_json: bool = False) -> CopyType | None:
    """Return the type that an Arrow type is staged as, or None; with `as_json` lists are JSON."""
    if as_json and pa.types.is_nested(type_):
        return _JSON
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = _SCALARS.get(_id(type_.value_type))
        if item is None:
            return _JSON
        return CopyType(f"{item.type}[]", item.oid, lambda array: list_bytes(array, item))
    if pa.types.is_struct(type_) or pa.types.is_map(type_):
        return _JSON
    return _SCALARS.get(_id(type_))


def encoded(array: pa.Array, *, as_json: bool = False) -> pa.Array:
    """Return the bytes of each value."""
    kind = copy_type_of(array.type, as_json=as_json)
    assert kind is not None  # noqa: S101 - the driver has refused all others
    return kind.encode(array)


def text_bytes(array: pa.Array) -> pa.Array:
    """Return text or bytes as bytes."""
    return array if array.type == pa.binary() else array.cast(pa.binary())


def list_bytes(array: pa.Array, item: CopyType) -> pa.Array:
    """Return an array of PostgreSQL for each list."""
    counts = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    encoded = list_items(counts, item.encode(pc.list_flatten(array)), item.oid)
    return _where(array, encoded)


def list_items(counts: pa.Array, items: pa.Array, oid: int) -> pa.Array:
    """Return an array of PostgreSQL for each count, with so many of the items, bytes or nulls."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(_numpy(counts))]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, _joined([_lengths(items), _filled(items)]))
    some, none = struct.pack("!iii", 1, 1, oid), struct.pack("!iii", 0, 0, oid)
    full = _joined([pa.scalar(some), fixed(_numpy(counts), ">i4"), pa.scalar(struct.pack("!i", 1))])
    heads = pc.if_else(pc.equal(counts, 0), pa.scalar(none), full)
    return _joined([heads, pc.binary_join(lists, b"")])


def _joined(parts: Sequence[Bytes]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, b"")


def _lengths(field: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(field), _NULL)
    return fixed(_numpy(lengths), ">i4")


def _filled(field: pa.Array) -> pa.Array:
    return pc.fill_null(field, b"") if field.null_count else field


def fixed(values: np.ndarray[Any, Any], form: str) -> pa.Array:
    """Return each number as its bytes, in the form that NumPy calls it by, such as `>i8`."""
    ordered = np.ascontiguousarray(values.astype(form))
    width = pa.binary(ordered.itemsize)
    return pa.Array.from_buffers(width, len(ordered), [None, pa.py_buffer(ordered)]).cast(
        pa.binary()
    )


def _numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    numbers: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _where(given: pa.Array, encoded: pa.Array) -> pa.Array:
    """Return what was encoded, but null wherever what was given is null."""
    if not given.null_count:
        return encoded
    return pc.if_else(given.is_valid(), encoded, pa.scalar(None, pa.binary()))


def _content(joined: pa.Array) -> pa.Buffer:
    _, offsets, content = joined.buffers()
    ends = np.frombuffer(offsets, np.int32)[joined.offset : joined.offset + len(joined) + 1]
    return content.slice(int(ends[0]), int(ends[-1] - ends[0]))


def _number(form: str, less: int = 0, as_type: pa.DataType | None = None) -> Any:  # noqa: ANN401 - an encoder
    def encode(array: pa.Array) -> pa.Array:
        numbers = array.cast(as_type) if as_type is not None else array
        plain = pc.fill_null(numbers, 0) if numbers.null_count else numbers
        return _where(array, fixed(_numpy(plain) - less if less else _numpy(plain), form))

    return encode


def _microseconds(array: pa.Array) -> pa.Array:
    zone = array.type.tz
    return _number(">i8", _EPOCH_MICROSECONDS)(
        array.cast(pa.timestamp("us", zone)).cast(pa.int64())
    )


def _decimals(array: pa.Array) -> pa.Array:
    return text_bytes(array.cast(pa.string()))


def _id(type_: pa.DataType) -> str:
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamptz"
    return "decimal" if pa.types.is_decimal(type_) else str(type_)


_TEXT, _BYTES = CopyType("text", 25, text_bytes, ' COLLATE "C"'), CopyType("bytea", 17, text_bytes)
_JSON = CopyType("text", 25, lambda array: text_bytes(json_texts(array)))
_SCALARS = {
    "bool": CopyType("boolean", 16, _number("u1", as_type=pa.uint8())),
    "int8": CopyType("smallint", 21, _number(">i2")),
    "int16": CopyType("smallint", 21, _number(">i2")),
    "int32": CopyType("integer", 23, _number(">i4")),
    "int64": CopyType("bigint", 20, _number(">i8")),
    "float": CopyType("real", 700, _number(">f4")),
    "double": CopyType("double precision", 701, _number(">f8")),
    "decimal": CopyType("text", 25, _decimals, "::numeric"),
    "string": _TEXT,
    "large_string": _TEXT,
    "binary": _BYTES,
    "large_binary": _BYTES,
    "date32[day]": CopyType("date", 1082, _number(">i4", _EPOCH_DAYS, pa.int32())),
    "timestamp": CopyType("timestamp", 1114, _microseconds),
    "timestamptz": CopyType("timestamptz", 1184, _microseconds),
}
