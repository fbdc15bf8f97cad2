"""Messages that prove themselves: a header tells whose each is, and whether it is whole."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from harvest_dagster import Message

HEADER = "proof"


class Proof(NamedTuple):
    """Which transaction a message is of, its number there and in its lane, and when it was made.

    A message without a key has no lane, and there the number 0.
    """

    tx: int
    number: int
    place: int
    at_ms: int


def message(topic: str, key: str | None, value: bytes | None, proof: Proof) -> Message:
    """Make a message with its proof."""
    words = (*proof, _sum(key.encode() if key else None, value))
    return Message(topic, key, value, {HEADER: " ".join(map(str, words))})


def proof_of(polled: Any) -> tuple[Proof, bool]:
    """Read the proof of a message that a consumer got; tell whether it arrived as it was made."""
    ((_, content),) = polled.headers()
    tx, number, place, at_ms, checksum = map(int, content.split())
    whole = checksum == _sum(polled.key(), polled.value())
    return Proof(tx, number, place, at_ms), whole


def _sum(key: bytes | None, value: bytes | None) -> int:
    marked = b"" if value is None else b"+"  # a tombstone is not an empty value
    return zlib.crc32(value or b"", zlib.crc32(marked + (key or b"")))
