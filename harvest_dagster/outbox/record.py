"""The message that is stashed: checked and encoded when it is made, so that errors point there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from harvest_dagster.errors import MessageError
from harvest_dagster.text import kind_of

Value: TypeAlias = "bytes | str | dict[str, Any] | list[Any] | int | float | bool | None"
HeaderValue: TypeAlias = "bytes | str | None"
Headers: TypeAlias = "Mapping[str, HeaderValue] | Iterable[tuple[str, HeaderValue]]"

TOPIC_CHARACTERS = 249
PARTITIONS = 2**31
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NO_TOPICS = {
    ".",
    "..",
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
}
_SHOWN_CHARACTERS = 60
_REMEMBERED_TOPICS = 10_000
_good_topics: set[str] = set()


class _Fields(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None


class Message(_Fields):
    """A message for Kafka.

    `value` may be bytes, a str (sent as UTF-8), anything of JSON, or None for a tombstone. `key`
    may be None where order does not matter. Header keys may repeat, header values may be empty or
    None, as Kafka allows. What it holds is what Kafka will get: bytes.

    It is a tuple because millions of them are made: nothing else that is immutable is as quick.
    """

    __slots__ = ()

    def __new__(  # noqa: PYI034 - Self is not for the tuple that NamedTuple makes
        cls,
        topic: str,
        key: bytes | str | None,
        value: Value,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Message:
        """Check every field, and encode what is not bytes yet."""
        if topic.__class__ is not str or topic not in _good_topics:
            _check_topic(topic)
        if key is not None and key.__class__ is not bytes:
            key = _encoded("key", key)
        if value is not None and value.__class__ is not bytes:
            value = _encoded_value(value)
        if partition is not None:
            _check_partition(partition)
        return tuple.__new__(
            cls, (topic, key, value, _encoded_headers(headers) if headers else (), partition)
        )

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Message:  # type: ignore[override] # not generic
        """Make one from its fields, checked as ever; `_replace` comes this way."""
        return cls(*iterable)


def is_topic(name: str) -> bool:
    """Return whether Kafka could have a topic of this name, and not for itself."""
    return name not in _NO_TOPICS and _TOPIC.fullmatch(name) is not None


def _check_topic(topic: object) -> None:
    if not isinstance(topic, str):
        raise MessageError(f"topic: {shown(topic)} is {kind_of(topic)}; give text")
    if len(topic) > TOPIC_CHARACTERS:
        raise MessageError(
            f"topic: {shown(topic)} has {len(topic)} characters; Kafka's limit is"
            f" {TOPIC_CHARACTERS}"
        )
    if not is_topic(topic):
        raise MessageError(
            f"topic: {shown(topic)} is not legal; Kafka takes letters, digits, '.', '_' and '-',"
            " at least one, and neither '.' nor '..'"
        )
    if len(_good_topics) < _REMEMBERED_TOPICS:
        _good_topics.add(topic)


def _check_partition(partition: object) -> None:
    if isinstance(partition, bool) or not isinstance(partition, int):
        raise MessageError(
            f"partition: {shown(partition)} is {kind_of(partition)}; give a whole number, or null"
        )
    if not 0 <= partition < PARTITIONS:
        raise MessageError(f"partition: {partition} is not from 0 to {PARTITIONS - 1}")


def _encoded_headers(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    if isinstance(headers, str | bytes):
        raise MessageError(
            f"headers: {shown(headers)} is {kind_of(headers)}; give an object (dict), or pairs"
        )
    if isinstance(headers, Mapping):
        return tuple([_encoded_header(key, value) for key, value in headers.items()])
    if not isinstance(headers, Iterable):
        raise MessageError(f"headers: {shown(headers)} is neither an object (dict) nor pairs")
    return tuple([_encoded_pair(pair) for pair in headers])


def _encoded_pair(pair: object) -> tuple[str, bytes | None]:
    # A str or a dict of two would unpack as well, into what nobody meant.
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004 - a pair
        raise MessageError(f"headers: {shown(pair)} is no pair of key and value")
    return _encoded_header(*pair)


def _encoded_header(key: object, value: object) -> tuple[str, bytes | None]:
    if not isinstance(key, str):
        raise MessageError(f"headers: the key {shown(key)} is {kind_of(key)}; give text")
    if "\0" in key:
        raise MessageError(f"headers: the key {shown(key)} has a NUL, which PostgreSQL can't keep")
    _encoded("headers: the key", key)
    if value is None or isinstance(value, bytes):
        return key, value
    return key, _encoded(f"headers: the value of {shown(key)}", value)


def _encoded_value(value: object) -> bytes:
    if isinstance(value, dict | list | int | float):
        return _encoded_json(value)
    return _encoded("value", value, "text, bytes, any other JSON, or null")


def _encoded_json(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"value: {shown(value)} is not JSON: {error}") from None


def _encoded(field: str, value: object, wanted: str = "text, bytes or null") -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise MessageError(f"{field}: {shown(value)} is not Unicode: {error.reason}") from None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise MessageError(f"{field}: {shown(value)} is {kind_of(value)}; give {wanted}")


def shown(value: object) -> str:
    """Show a value in an error: printable, and no longer than a glance takes."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):  # too many digits, nested too deeply
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
