"""How `harvest parked` shows a record."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import zip_longest

from harvest_dagster.cli.show import size
from harvest_dagster.outbox.parked import Parked, as_text

_EXCERPT = 300
_SHORT = 60


def cells(record: Parked) -> tuple[object, ...]:
    """One line of a list."""
    key = "-" if record.key is None else _short(as_text(record.key))
    parked_at = record.parked_at.astimezone().isoformat(" ", "seconds")
    bulk = size(record.value_bytes or 0)
    return (record.id, record.topic, key, bulk, record.tries, parked_at, record.reason)


def lines(record: Parked) -> list[tuple[str, object]]:
    """What there is to see of a record that was read whole."""
    excerpt = None if record.value is None else record.value[:_EXCERPT]
    more = "…" if len(record.value or b"") > _EXCERPT else ""
    return [
        ("topic", record.topic),
        ("partition", "-" if record.partition is None else record.partition),
        ("key", _or_null(record.key)),
        *((f"header {as_text(k.encode())}", _or_null(v)) for k, v in _headers(record)),
        ("key size", size(len(record.key or b""))),
        ("value size", size(record.value_bytes or 0)),
        ("value", _or_null(excerpt) + more),
        ("reason", record.reason),
        ("tries", record.tries),
        ("holds its key", "yes" if record.holds_key and not record.requeued_at else "no"),
        ("stashed at", record.create_time or "-"),
        ("parked at", record.parked_at),
        ("requeued at", record.requeued_at or "-"),
    ]


def as_dict(record: Parked) -> dict[str, object]:
    """All but headers and value, for scripts."""
    return {
        "id": record.id,
        "shard": record.shard,
        "topic": record.topic,
        "partition": record.partition,
        "key": None if record.key is None else as_text(record.key),
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": record.value_bytes,
        "reason": record.reason,
        "tries": record.tries,
        "holds_key": record.holds_key,
        "create_time": record.create_time,
        "parked_at": record.parked_at,
        "requeued_at": record.requeued_at,
    }


def contents(record: Parked) -> dict[str, object]:
    """Headers and value, for scripts; what is no text is there as base64."""
    return {
        "headers": [[k, None if v is None else as_text(v)] for k, v in _headers(record)],
        "excerpt": as_text((record.value or b"")[:_EXCERPT]),
        "key_base64": _base64(record.key),
        "value_base64": _base64(record.value),
    }


def _headers(record: Parked) -> Iterator[tuple[str, bytes | None]]:
    """Pair names with values; that there is one too many may be why the record is parked."""
    return (
        (key or "", value) for key, value in zip_longest(record.header_keys, record.header_values)
    )


def _or_null(content: bytes | None) -> str:
    return "NULL" if content is None else as_text(content)


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
