"""What a statement may name of a message."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from harvest_dagster.errors import ConfigError, MessageError
from harvest_dagster.reader import ReceivedMessage
from harvest_dagster.reader.into_table import Parameters

VALUE = b'{"id": 7, "who": {"name": "Ada"}, "tags": ["x"], "none": null, "yes": true}'
HEADERS = (("trace", b"t1"), ("empty", None), ("trace", b"t2"))


def named(name: str, value: bytes | None = VALUE, key: bytes | None = b"k") -> Any:
    """Return what a name stands for."""
    return Parameters(ReceivedMessage("orders", 3, 9, key, value, HEADERS))[name]


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("key", "k"),
        ("value", VALUE.decode()),
        ("value.id", 7),
        ("value.who.name", "Ada"),
        ("value.who.age", None),
        ("value.id.further", None),
        ("value.none", None),
        ("value.yes", True),
        ("value.missing", None),
        ("headers.trace", "t2"),
        ("headers.empty", None),
        ("headers.missing", None),
        ("topic", "orders"),
        ("partition", 3),
        ("offset", 9),
        ("uuid", None),
        ("timestamp", None),
        ("published_at", None),
    ],
)
def test_names(name: str, stands_for: object) -> None:
    """Each is what it says; what is not there is NULL, and of headers the last one counts."""
    assert named(name) == stands_for


def test_what_is_no_scalar() -> None:
    """An object or an array goes as jsonb."""
    found = named("value.tags")
    assert isinstance(found, Jsonb)
    assert found.obj == ["x"]


def test_a_tombstone() -> None:
    """It has no value, and no fields."""
    assert [named(name, None, None) for name in ("key", "value", "value.id")] == [None] * 3


@pytest.mark.parametrize("name", ["keys", "headers", "value_id", "who.name"])
def test_a_name_that_is_none(name: str) -> None:
    """It is refused, with those that there are."""
    with pytest.raises(ConfigError, match=r"there are key, value, value\.<field>"):
        named(name)


def test_what_can_not_be_read() -> None:
    """It is said."""
    with pytest.raises(MessageError, match="the value is no JSON"):
        named("value.id", b"{")
    with pytest.raises(MessageError, match="must be text in UTF-8"):
        named("key", key=b"\xff")
