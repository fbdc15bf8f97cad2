from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from harvest_dagster import HarvestError, MessageError
from harvest_dagster.outbox import Message
from harvest_dagster.text import kind_of


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def refusal(*fields: Any, **named: Any) -> str:
    """What is said of a message that is refused."""
    with pytest.raises(MessageError) as error:
        Message(*fields, **named)
    return str(error.value)


@pytest.mark.parametrize(
    "topic", ["", ".", "..", "a b", "a\n", "orders\n", "a/b", "é", "a\0", "a:b", "\ud800"]
)
def test_illegal_topic(topic: str) -> None:
    """A topic with what Kafka does not take is refused, shown, and told what it takes."""
    said = refusal(topic, "7", None)
    assert said.startswith(f"topic: {topic!a} is not legal")
    assert "letters, digits, '.', '_' and '-'" in said


def test_topic_too_long() -> None:
    """A topic of 250 characters is refused, with the limit of 249."""
    assert "has 250 characters; Kafka's limit is 249" in refusal("a" * 250, "7", None)


@pytest.mark.parametrize("topic", [None, b"orders", 5, ["orders"]])
def test_topic_of_wrong_type(topic: Any) -> None:
    """A topic that is no str is refused with its type, even one that can't be hashed."""
    assert refusal(topic, "7", None) == (f"topic: {topic!r} is {kind_of(topic)}; give text")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("t", 5, None), "key: 5 is a number; give text, bytes or null"),
        (("t", {}, None), "key: {} is an object (dict); give text, bytes or null"),
        (("t", "k", Decimal(1)), "value: Decimal('1') is of type Decimal; give text, bytes"),
        (("t", "k", ()), "value: () is of type tuple; give text, bytes"),
        (("t", "k", None, {5: "v"}), "headers: the key 5 is a number; give text"),
        (("t", "k", None, {b"k": "v"}), "headers: the key b'k' is bytes; give text"),
        (("t", "k", None, {"h": 5}), "headers: the value of 'h': 5 is a number; give text, bytes"),
        (("t", "k", None, "ab"), "headers: 'ab' is text (str); give an object (dict), or pairs"),
        (("t", "k", None, b"ab"), "headers: b'ab' is bytes; give an object (dict), or pairs"),
        (("t", "k", None, 5), "headers: 5 is neither an object (dict) nor pairs"),
        (("t", "k", None, [5]), "headers: 5 is no pair of key and value"),
        (("t", "k", None, ["ab"]), "headers: 'ab' is no pair of key and value"),
        (("t", "k", None, [("a",)]), "headers: ('a',) is no pair of key and value"),
        (("t", "k", None, [{"key": "a", "value": "b"}]), "is no pair of key and value"),
        (
            ("t", "k", None, (), True),
            "partition: True is true or false; give a whole number, or null",
        ),
        (("t", "k", None, (), "1"), "partition: '1' is text (str); give a whole number, or null"),
        (("t", "k", None, (), 1.0), "partition: 1.0 is a number; give a whole number, or null"),
    ],
)
def test_wrong_type(fields: tuple[Any, ...], said: str) -> None:
    """A field of a wrong type is refused with its value, its type, and what it may be."""
    assert said in refusal(*fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("t", "\ud800", None), r"key: '\ud800' is not Unicode: surrogates not allowed"),
        (("t", "k", "\ud800"), r"value: '\ud800' is not Unicode"),
        (("t", "k", {"a": "\ud800"}), r"value: {'a': '\ud800'} is not JSON"),
        (("t", "k", None, {"\ud800": "v"}), r"headers: the key: '\ud800' is not Unicode"),
        (("t", "k", None, {"h": "\ud800"}), r"headers: the value of 'h': '\ud800' is not Unicode"),
        (("t", "k", None, {"a\0": "v"}), r"headers: the key 'a\x00' has a NUL"),
    ],
)
def test_text_that_can_not_be_kept(fields: tuple[Any, ...], said: str) -> None:
    """A lone surrogate anywhere, or a NUL in a header's key, is refused with its field."""
    assert said in refusal(*fields)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), [float("nan")], {"a": object()}, {"a": {1, 2}}, {(1,): 2}],
)
def test_not_json(value: Any) -> None:
    """A value that JSON can't say is refused, and shown."""
    assert re.match(r"value: .+ is not JSON: .+", refusal("t", "k", value))


@pytest.mark.parametrize(
    "value",
    [nested(100_000), 10**5000, {"a": 10**5000}],
    ids=["nested", "digits", "digits inside"],
)
def test_too_deep_or_too_many_digits(value: Any) -> None:
    """A value too deep or too long for Python's own JSON is refused like any other."""
    assert refusal("t", "k", value).startswith(f"value: <{type(value).__name__}> is not JSON")


def test_circular() -> None:
    """A value that holds itself is refused."""
    value: list[Any] = []
    value.append(value)
    assert "Circular reference" in refusal("t", "k", value)


@pytest.mark.parametrize("partition", [-1, 2**31])
def test_partition_out_of_range(partition: int) -> None:
    """A partition that Kafka can't number is refused with the limits."""
    said = refusal("t", "k", None, partition=partition)
    assert said == f"partition: {partition} is not from 0 to 2147483647"


def test_replace_checks() -> None:
    """A message made from another by _replace is checked like any other."""
    with pytest.raises(MessageError, match="topic: 'a b' is not legal"):
        Message("t", "k", None)._replace(topic="a b")


def test_long_values_are_cut() -> None:
    """What is refused is shown no longer than a glance takes, and on one line."""
    said = refusal("t", "k", None, {"h\n" * 500: 5})
    assert len(said) < 150
    assert "\n" not in said


def test_is_a_value_error_and_ours() -> None:
    """A refusal can be caught as a ValueError, and as an error of harvest's."""
    assert issubclass(MessageError, ValueError)
    assert issubclass(MessageError, HarvestError)
