from __future__ import annotations

import json
import pickle
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster.outbox import Message

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # PostgreSQL is not asked here, so any text that UTF-8 knows will do
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcé"), inner),
    max_leaves=8,
)


class Topic(StrEnum):
    """Topics that a program of its own names."""

    ORDERS = "orders"


@pytest.mark.parametrize(
    ("given_value", "kept"),
    [
        (b"\x00\xff", b"\x00\xff"),
        (b"", b""),
        ("", b""),
        ("grüße\0", "grüße\0".encode()),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        ({"total": 12.5, "who": "é"}, '{"total":12.5,"who":"é"}'.encode()),
        ({}, b"{}"),
        ([1, "a", None], b'[1,"a",null]'),
        ([], b"[]"),
        (7, b"7"),
        (-0.5, b"-0.5"),
        (True, b"true"),
        (None, None),
    ],
)
def test_value(given_value: Any, kept: bytes | None) -> None:
    """A value of any kind is kept as the bytes that Kafka gets, and None as a tombstone."""
    assert Message("orders", "7", given_value).value == kept


@pytest.mark.parametrize(
    ("given_key", "kept"),
    [
        (b"\xff", b"\xff"),
        ("é", "é".encode()),
        ("", b""),
        (b"", b""),
        (bytearray(b"k"), b"k"),
        (memoryview(b"k"), b"k"),
        (None, None),
    ],
)
def test_key(given_key: Any, kept: bytes | None) -> None:
    """A key is kept as bytes, and no key as None."""
    assert Message("orders", given_key, None).key == kept


@pytest.mark.parametrize(
    ("given_headers", "kept"),
    [
        ((), ()),
        ({}, ()),
        ({"a": "é", "b": b"\xff"}, (("a", "é".encode()), ("b", b"\xff"))),
        ([("a", "1"), ("a", "2")], (("a", b"1"), ("a", b"2"))),
        ([["a", "1"]], (("a", b"1"),)),
        ({"a": None, "b": "", "c": bytearray(b"x")}, (("a", None), ("b", b""), ("c", b"x"))),
        ({"": "1"}, (("", b"1"),)),
        ((pair for pair in [("a", "1")]), (("a", b"1"),)),
    ],
)
def test_headers(given_headers: Any, kept: tuple[tuple[str, bytes | None], ...]) -> None:
    """Headers from a mapping or pairs keep their order, their repeated keys and their nulls."""
    assert Message("orders", "7", None, given_headers).headers == kept


@pytest.mark.parametrize("partition", [None, 0, 2**31 - 1])
def test_partition(partition: int | None) -> None:
    """A partition is none, or whatever Kafka can number."""
    assert Message("orders", "7", None, partition=partition).partition == partition


@pytest.mark.parametrize("topic", ["a", "a" * 249, "A.b_c-9", "...", "orders", Topic.ORDERS])
def test_topic(topic: str) -> None:
    """All topics that Kafka allows are taken."""
    assert Message(topic, "7", None).topic == topic


@given(JSON)
def test_json_comes_back(value: Any) -> None:
    """A value of JSON reads back as what it was."""
    message = Message("orders", "7", {"value": value})
    assert json.loads(message.value or b"") == {"value": value}


@pytest.mark.parametrize("field", ["topic", "key", "value", "headers", "partition", "other"])
def test_immutable(field: str) -> None:
    """No field can be set once the message is made, and none added."""
    message = Message("orders", "7", {})
    with pytest.raises(AttributeError):
        setattr(message, field, "x")


def test_equal_if_kafka_gets_the_same() -> None:
    """Messages are equal, and of one hash, if what Kafka gets is the same."""
    one = Message("orders", "7", {"a": 1}, {"h": "v"})
    other = Message("orders", b"7", '{"a":1}', [("h", b"v")])
    assert (one, hash(one)) == (other, hash(other))


@pytest.mark.parametrize(
    "other",
    [
        Message("order", "7", "v", {"h": "v"}, 1),
        Message("orders", "8", "v", {"h": "v"}, 1),
        Message("orders", "7", None, {"h": "v"}, 1),
        Message("orders", "7", "v", {"h": None}, 1),
        Message("orders", "7", "v", {"h": "v"}, 2),
    ],
)
def test_unequal(other: Message) -> None:
    """Messages that differ in any field are not equal."""
    assert Message("orders", "7", "v", {"h": "v"}, 1) != other


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int) -> None:
    """A message survives pickling, and is a Message again."""
    message = Message("orders", b"\xff", None, [("a", None), ("a", "")], 3)
    again = pickle.loads(pickle.dumps(message, protocol))  # noqa: S301 - our own bytes
    assert (type(again), again) == (Message, message)


def test_replace_encodes() -> None:
    """A message made from another by _replace is encoded like any other."""
    changed: dict[str, Any] = {"value": {"a": 1}}
    assert Message("orders", "7", None)._replace(**changed).value == b'{"a":1}'
