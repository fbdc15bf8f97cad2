"""Batches of messages: what is wrong with one is found without looking at each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.table import Column, Outbox, Shape
from harvest_dagster.spark.messages import MessageEncoder

NATIVE = {
    "kafka_topic": "text", "kafka_key": "bytea", "kafka_value": "bytea",
    "kafka_header_keys": "text[]", "kafka_header_values": "bytea[]", "kafka_partition": "integer",
}  # fmt: skip
GOHARVEST = {
    "kafka_topic": "character varying", "kafka_key": "character varying",
    "kafka_value": "character varying", "kafka_header_keys": "text[]",
    "kafka_header_values": "text[]",
}  # fmt: skip


def encoder(types: dict[str, str], topic: str | None = "t") -> MessageEncoder:
    """Make one for a table of such columns; goharvest's key is required."""
    columns = {n: Column(n, t, None, types is GOHARVEST, False) for n, t in types.items()}
    return MessageEncoder(Outbox.named("outbox", max_message_bytes=1000), Shape(columns), topic, ())


@pytest.mark.parametrize(
    ("types", "column", "said"),
    [
        (NATIVE, {"topic": pa.array(["a", "a b"])}, "topic: 'a b' is not legal"),
        (NATIVE, {"key": pa.array(["k", "x" * 2000])}, "the limit is 1,000"),
        (NATIVE, {"partition": pa.array([0, -1], pa.int32())}, "partition: -1 is not from 0"),
        (GOHARVEST, {"key": pa.array(["k", None])}, "kafka_key is NOT NULL"),
        (GOHARVEST, {"key": pa.array(["k", "l"]), "partition": pa.array([None, 1], pa.int32())},
         "no column kafka_partition"),
    ],
)  # fmt: skip
def test_the_one_that_is_wrong(types: dict[str, str], column: dict[str, Any], said: str) -> None:
    """The first message that could never go out is named as a stash would name it."""
    batch = pa.record_batch({"value": pa.array(["v", "v"]), **column})
    with pytest.raises(MessageError, match=said):
        encoder(types)(batch)


def test_no_topic() -> None:
    """A row without a topic needs the option."""
    batch = pa.record_batch({"value": pa.array(["v"]), "topic": pa.array([None], pa.string())})
    with pytest.raises(MessageError, match="topic: it is null in a row"):
        encoder(NATIVE, None)(batch)


def test_headers_count() -> None:
    """Headers count towards the size of their message, and of no other."""
    headers = pa.array([[("h", "x" * 990)], []], pa.map_(pa.string(), pa.string()))
    batch = pa.record_batch({"value": pa.array(["v", "v"]), "headers": headers})
    with pytest.raises(MessageError, match="headers: those of the message"):
        encoder(NATIVE)(batch)
    assert len(encoder(NATIVE)(batch.slice(1))) == 4


@pytest.mark.parametrize("filled", [True, False])
def test_what_is_left_out(filled: bool) -> None:
    """Columns that a DataFrame lacks are left to the table, where it can fill them."""
    columns = {n: Column(n, t, None, False, filled and "header" in n) for n, t in NATIVE.items()}
    made = MessageEncoder(Outbox.named("outbox"), Shape(columns), "t", ())
    schema = pa.schema([("value", pa.string())])
    staging = made.staging("s", schema)
    names = [column.name for column in staging.columns]
    headers = [] if filled else ["kafka_header_keys", "kafka_header_values"]
    assert names == ["kafka_key", "kafka_value", *headers]
    assert staging.same == (("kafka_topic", "t"),)
    batch = pa.record_batch({"value": pa.array(["v"])})
    assert len(made(batch)) == len(names)
