"""The lanes of the bench: its topics and keys."""

from __future__ import annotations

TOPIC, BIG_TOPIC = "orders", "big"
PARTITIONS = {TOPIC: 6, BIG_TOPIC: 2}
HOT = [f"hot-{number}" for number in range(4)]
_OWN, _OWN_BIG = 40, 5


def own(writer: int) -> list[str]:
    """Keys that one writer alone writes."""
    return [f"w{writer}-{number}" for number in range(_OWN)]


def own_big(writer: int) -> list[str]:
    """Likewise, for large values."""
    return [f"w{writer}-big-{number}" for number in range(_OWN_BIG)]


def every(writers: range) -> list[tuple[str, str]]:
    """All lanes: topics and keys."""
    return [
        *((TOPIC, key) for key in HOT),
        *((TOPIC, key) for writer in writers for key in own(writer)),
        *((BIG_TOPIC, key) for writer in writers for key in own_big(writer)),
    ]
