"""Messages that prove themselves: a header tells whose each is, and whether it is whole.

A second header is the candidate's: the epoch under which it was produced.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from harvest_dagster import Message

HEADER, EPOCH = "proof", "epoch"


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
    words = (*proof, _sum(topic, key.encode() if key else None, value))
    return Message(topic, key, value, {HEADER: " ".join(map(str, words))})


def proof_of(polled: Any) -> tuple[Proof, bool]:
    """Read the proof of a message that a consumer got; tell whether it arrived as it was made."""
    (name, content), *others = polled.headers()
    tx, number, place, at_ms, checksum = map(int, content.split())
    whole = checksum == _sum(polled.topic(), polled.key(), polled.value())
    names = [name, *(other for other, _ in others)]
    return Proof(tx, number, place, at_ms), whole and names in ([HEADER], [HEADER, EPOCH])


def epoch_of(polled: Any) -> int:
    """Tell under which epoch a message was produced; 0 if its candidate did not say."""
    return int(dict(polled.headers()).get(EPOCH, 0))


def _sum(topic: str, key: bytes | None, value: bytes | None) -> int:
    parts = (topic.encode(), key, value)  # each with its length: a tombstone is not an empty value
    marked = b"".join(b"-" if part is None else b"%d+%b" % (len(part), part) for part in parts)
    return zlib.crc32(marked)
