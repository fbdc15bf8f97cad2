"""From a message to a row: the checks that depend on the table, and the bytes of binary COPY.

In PostgreSQL's binary form text and bytea look alike, so a row for COPY is the same for either
kind of table, but for the type that an array of header values names.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.arrays import (
    BYTEA_OID,
    NO_ITEMS,
    TEXT_OID,
    binary_array,
    binary_keys,
    bytes_literal,
    keys_literal,
    text_literal,
)
from harvest_dagster.outbox.record import Message, shown
from harvest_dagster.outbox.table import Outbox, Shape

CopyRow: TypeAlias = "tuple[bytes | None, ...]"
InsertRow: TypeAlias = "tuple[object, ...]"

RECORD_BYTES = 80
"""What Kafka adds to a message's own bytes at most: the batch's head (61) and varints."""
HEADER_BYTES = 10

_int32 = struct.Struct("!i").pack
_int64 = struct.Struct("!q").pack


class RowEncoder:
    """Turns messages into rows of one table; raises MessageError for what the table can't hold."""

    def __init__(self, outbox: Outbox, shape: Shape) -> None:
        self._limit = outbox.max_message_bytes
        self._room = outbox.max_message_bytes - RECORD_BYTES
        self._columns = shape.columns
        self._text_key = shape.is_text("kafka_key")
        self._text_value = shape.is_text("kafka_value")
        self._plain = not (
            self._text_key or self._text_value or shape.columns["kafka_key"].required
        )
        self._text_headers = shape.text_headers
        self._values_oid = TEXT_OID if shape.text_headers else BYTEA_OID
        self._no_keys, self._no_values = (
            binary_array(TEXT_OID, ()),
            binary_array(self._values_oid, ()),
        )
        self._has_partition = shape.has_partition
        self.wants_time = shape.wants_time
        names = ["kafka_topic", "kafka_key", "kafka_value", "kafka_header_keys"]
        names += ["kafka_header_values"]
        names += ["kafka_partition"] if shape.has_partition else []
        names += ["create_time"] if shape.wants_time else []
        self.columns = tuple(names)

    def copy_row(self, message: Message, time: bytes | None) -> CopyRow:
        """Encode for binary COPY, each field as the bytes that go over the wire."""
        topic, key, value, headers, partition = message
        self._check(message)
        keys, values = self._no_keys, self._no_values
        if headers:
            keys = binary_keys(tuple([name for name, _ in headers]))
            values = binary_array(self._values_oid, [content for _, content in headers])
        row: CopyRow = (topic.encode(), key, value, keys, values)
        if self._has_partition:
            row = (*row, None if partition is None else _int32(partition))
        return row if time is None else (*row, time)

    def fields(self, message: Message) -> InsertRow:
        """The message's fields as any driver takes them; create_time is the statement's."""
        self._check(message)
        topic, key, value, headers, partition = message
        row: InsertRow = (
            topic,
            _as(self._text_key, key),
            _as(self._text_value, value),
            [name for name, _ in headers],
            [_as(self._text_headers, content) for _, content in headers],
        )
        return (*row, partition) if self._has_partition else row

    def insert_row(self, message: Message) -> InsertRow:
        """The fields with their arrays written out, which psycopg is slow at."""
        topic, key, value, _, _, *partition = self.fields(message)
        headers = message.headers
        if not headers:
            return (topic, key, value, NO_ITEMS, NO_ITEMS, *partition)
        keys = keys_literal(tuple([name for name, _ in headers]))
        contents = [content for _, content in headers]
        literal = text_literal if self._text_headers else bytes_literal
        return (topic, key, value, keys, literal(contents), *partition)

    def _check(self, message: Message) -> None:
        size = len(message[1] or b"") + len(message[2] or b"")
        for name, content in message[3]:
            size += len(name.encode()) + len(content or b"") + HEADER_BYTES
        if size > self._room:
            self._refuse_size(message, size)
        if message[4] is not None and not self._has_partition:
            raise MessageError(
                f"partition: {message[4]} can't be kept, the table has no column kafka_partition:"
                " see `harvest outbox check` for how to add it"
            )
        if not self._plain:
            self._check_fields(message)
        if self._text_headers:
            for name, content in message[3]:
                _check_text(f"headers: the value of {shown(name)}", content, None)

    def _check_fields(self, message: Message) -> None:
        if message.key is None and self._columns["kafka_key"].required:
            raise MessageError("key: None can't be kept, the table's kafka_key is NOT NULL")
        check_length("topic", message.topic, self._columns["kafka_topic"].characters)
        if self._text_key:
            _check_text("key", message.key, self._columns["kafka_key"].characters)
        if self._text_value:
            _check_text("value", message.value, self._columns["kafka_value"].characters)

    def _refuse_size(self, message: Message, size: int) -> None:
        sizes = {"key": len(message.key or b""), "value": len(message.value or b"")}
        sizes["headers"] = size - sum(sizes.values())
        field = max(sizes, key=lambda name: sizes[name])
        raise MessageError(
            f"{field}: {shown(getattr(message, field))} has {sizes[field]:,} bytes, which makes the"
            f" message {size + RECORD_BYTES:,}; the limit is {self._limit:,} (max_message_bytes,"
            " to be raised along with the topic's max.message.bytes)"
        )


def binary_time(microseconds: int) -> bytes:
    """Encode a timestamptz, given as microseconds since 2000-01-01 UTC."""
    return _int64(microseconds)


def _as(text: bool, content: bytes | None) -> str | bytes | None:  # noqa: FBT001 - a column's trait
    return content.decode() if text and content is not None else content


def _check_text(field: str, content: bytes | None, limit: int | None) -> None:
    if content is None:
        return
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise MessageError(
            f"{field}: {shown(content)} is not UTF-8, and the table's column is text; a table of"
            " bytes is made by `harvest outbox create`"
        ) from None
    if "\0" in text:
        raise MessageError(f"{field}: {shown(text)} has a NUL, which a text column can't keep")
    check_length(field, text, limit)


def check_length(field: str, text: str, limit: int | None) -> None:
    """Refuse a text that is longer than its column."""
    if limit is not None and len(text) > limit:
        raise MessageError(
            f"{field}: {shown(text)} has {len(text):,} characters; the table's limit is {limit:,}"
        )
