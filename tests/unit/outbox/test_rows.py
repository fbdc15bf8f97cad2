from __future__ import annotations

from typing import Any

import pytest

from harvest_dagster import MessageError, OutboxError
from harvest_dagster.outbox import Message, Outbox
from harvest_dagster.outbox.rows import RowEncoder, binary_time
from harvest_dagster.outbox.table import Shape
from harvest_dagster.postgres.names import TableName

LIMIT = 1000


def shape(**types: str) -> Shape:
    """A table of bytes, but for the columns whose types are given."""
    native = {
        "kafka_topic": "text",
        "kafka_key": "bytea",
        "kafka_value": "bytea",
        "kafka_header_keys": "text[]",
        "kafka_header_values": "bytea[]",
    }
    rows = [(name, kind, None, False, True) for name, kind in (native | types).items()]
    return Shape.read(TableName("outbox"), rows)


GOHARVEST = Shape.read(
    TableName("outbox"),
    [
        ("create_time", "timestamp with time zone", None, True, False),
        ("kafka_topic", "character varying", 249, True, False),
        ("kafka_key", "character varying", 100, True, False),
        ("kafka_value", "character varying", 10_000, False, False),
        ("kafka_header_keys", "text[]", None, True, False),
        ("kafka_header_values", "text[]", None, True, False),
    ],
)


def encoder(shape: Shape, limit: int = LIMIT) -> RowEncoder:
    """An encoder for a table whose topics take messages of so many bytes."""
    return RowEncoder(Outbox(TableName("outbox"), limit), shape)


def refusal(message: Message, shape: Shape, limit: int = 10**6) -> str:
    """What is said of a message that the table can't hold, by INSERT and by COPY alike."""
    with pytest.raises(MessageError) as by_insert:
        encoder(shape, limit).insert_row(message)
    with pytest.raises(MessageError) as by_copy:
        encoder(shape, limit).copy_row(message, None)
    assert str(by_insert.value) == str(by_copy.value)
    return str(by_insert.value)


@pytest.mark.parametrize(
    ("field", "fits", "too_large"),
    [
        ("value", ("k", b"v" * 919), ("k", b"v" * 920)),
        ("value", (None, b"v" * 920), (None, b"v" * 921)),
        ("key", (b"k" * 920, None), (b"k" * 921, None)),
        ("headers", (None, None, {"é": b"h" * 908}), (None, None, {"é": b"h" * 909})),
        ("headers", (None, None, {"h" * 910: None}), (None, None, {"h" * 911: None})),
    ],
)
def test_size_to_the_byte(field: str, fits: tuple[Any, ...], too_large: tuple[Any, ...]) -> None:
    """A message of just the limit passes, one byte more is refused, naming the largest field."""
    assert encoder(shape()).insert_row(Message("t", *fits))
    said = refusal(Message("t", *too_large), shape(), LIMIT)
    assert said.startswith(f"{field}: ")
    assert "which makes the message 1,001; the limit is 1,000" in said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Message("t", None, ""), "key: None can't be kept, the table's kafka_key is NOT NULL"),
        (Message("t", b"\xff", ""), r"key: b'\xff' is not UTF-8"),
        (Message("t", "k", b"\xff"), r"value: b'\xff' is not UTF-8"),
        (Message("t", "k", "", {"h": b"\xff"}), r"headers: the value of 'h': b'\xff' is not UTF-8"),
        (Message("t", "a\0", ""), r"key: 'a\x00' has a NUL"),
        (Message("t", "k", "a\0"), r"value: 'a\x00' has a NUL"),
        (Message("t", "k", "", {"h": "a\0"}), r"headers: the value of 'h': 'a\x00' has a NUL"),
        (Message("t", "é" * 101, ""), "has 101 characters; the table's limit is 100"),
        (Message("t", "k", "é" * 10_001), "has 10,001 characters; the table's limit is 10,000"),
        (Message("t", "k", "", partition=3), "partition: 3 can't be kept"),
    ],
)
def test_refused_for_goharvest(message: Message, said: str) -> None:
    """What goharvest's columns can't hold is refused before the database sees it."""
    assert said in refusal(message, GOHARVEST)


def test_goharvest_counts_characters() -> None:
    """Text just as long as goharvest's columns is taken, counted in characters and not bytes."""
    message = Message("t" * 249, "é" * 100, "é" * 10_000)
    assert encoder(GOHARVEST, 10**6).insert_row(message)[1:3] == ("é" * 100, "é" * 10_000)


def test_tombstone_for_goharvest() -> None:
    """A tombstone, and a header without value, are nothing that goharvest's table refuses."""
    row = encoder(GOHARVEST).fields(Message("t", "k", None, {"h": None}))
    assert row == ("t", "k", None, ["h"], [None])


@pytest.mark.parametrize("column", ["kafka_key", "kafka_value"])
def test_half_way_table(column: str) -> None:
    """In a table half-way between the two, each column is judged by its own type."""
    half_way = shape(**{column: "text"})
    fields = {"kafka_key": "k", "kafka_value": "v"}
    assert encoder(half_way).insert_row(Message("t", "k", "v"))[1:3] == tuple(
        text if name == column else text.encode() for name, text in fields.items()
    )


def test_copy_row_ends_with_time() -> None:
    """A table whose create_time nothing fills is given it, as PostgreSQL counts time."""
    row = encoder(GOHARVEST).copy_row(Message("t", "k", "v"), binary_time(1))
    assert row[-1] == b"\0\0\0\0\0\0\0\1"
    assert encoder(GOHARVEST).columns[-1] == "create_time"


def test_shape_without_columns() -> None:
    """A table that is not there is an error that says how to make it."""
    with pytest.raises(OutboxError, match="no table outbox: make it with `harvest outbox create"):
        Shape.read(TableName("outbox"), [])


def test_shape_that_is_no_outbox() -> None:
    """A table that lacks columns of an outbox is an error that names them."""
    with pytest.raises(OutboxError, match="outbox is no outbox, it lacks kafka_key, kafka_value"):
        Shape.read(TableName("outbox"), [("kafka_topic", "text", None, True, False)])
