"""Messages as JSON lines: `{"topic": "orders", "key": "7", "value": {"total": 12.5}}`.

`value` may be a string, any JSON, or null for a tombstone; `key_base64` and `value_base64` carry
bytes; `headers` is an object, or an array of [key, value] where keys repeat.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.record import Message, shown

_FIELDS = ("topic", "key", "key_base64", "value", "value_base64", "headers", "partition")


class LineReader:
    """Reads a message from each line that is not blank; `number` is that of the line just read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.number = 0

    def __iter__(self) -> Iterator[Message]:
        for line in self._lines:
            self.number += 1
            if line.strip():
                yield _message(_parsed(line.strip()))


def _parsed(line: str) -> dict[str, Any]:
    try:
        fields = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise MessageError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise MessageError("not JSON that can be read: nested too deeply") from None
    except MessageError:
        raise
    except ValueError:
        raise MessageError("not JSON that can be read: a number has too many digits") from None
    if not isinstance(fields, dict):
        raise MessageError(f"{shown(fields)} is no object; write {{{_example()}}}")
    for name in fields:
        if name not in _FIELDS:
            near = get_close_matches(name, _FIELDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_FIELDS)}"
            raise MessageError(f"no field {shown(name)}{hint}")
    return fields


def _message(fields: dict[str, Any]) -> Message:
    if "topic" not in fields:
        raise MessageError("topic: missing")
    return Message(
        fields["topic"],
        _either(fields, "key"),
        _either(fields, "value"),
        _headers(fields.get("headers")),
        fields.get("partition"),
    )


def _either(fields: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - Message checks its type
    encoded = fields.get(f"{name}_base64")
    if encoded is None:
        if name not in fields and f"{name}_base64" not in fields:
            raise MessageError(f"{name}: missing; write null if there is none")
        return fields.get(name)
    if name in fields:
        raise MessageError(f"{name}: given as {name} and as {name}_base64; give one")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise MessageError(f"{name}_base64: {shown(encoded)} is not base64") from None


def _headers(headers: object) -> Any:  # noqa: ANN401 - Message checks its type
    if headers is None:
        return ()
    if isinstance(headers, list):
        return headers
    if isinstance(headers, dict):
        return headers
    raise MessageError(f"headers: {shown(headers)} is neither an object nor an array of pairs")


def _refuse_constant(name: str) -> None:
    raise MessageError(f"not JSON: {name} is no number that JSON knows")


def _example() -> str:
    return '"topic": "orders", "key": "7", "value": {}'
