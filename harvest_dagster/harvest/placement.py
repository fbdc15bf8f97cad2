"""In which partition a record is: said in its claim, so that nobody places it elsewhere.

The rule is the one that the user's producer has (`partitioner`), so that a key stays where it is
when the delivery changes. A record without a key goes where its clock says, all in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args
from zlib import crc32

from harvest_dagster.errors import ConfigError

Rule = Literal["consistent", "consistent_random", "murmur2", "murmur2_random"]
_USUAL: Rule = "consistent_random"
_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Placement:
    """A rule, by how many shards the outbox was harvested, and how many partitions topics had."""

    rule: Rule
    shards: int
    widths: Mapping[str, int]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Placement:
        """Read what a claim keeps."""
        return cls(kept["rule"], kept["shards"], kept["widths"])

    def kept(self) -> dict[str, object]:
        """Return what a claim keeps."""
        return {"rule": self.rule, "shards": self.shards, "widths": dict(self.widths)}

    def place(self, topic: str, key: bytes | str | None, clock: int) -> int:
        """Return a record's partition."""
        width = self.widths[topic]
        content = key.encode() if isinstance(key, str) else key
        if content is None or (not content and self.rule == "consistent_random"):
            return clock % width if self.rule.endswith("_random") else self._hashed(b"") % width
        return self._hashed(content) % width

    def _hashed(self, key: bytes) -> int:
        return crc32(key) if self.rule.startswith("consistent") else murmur2(key) & 0x7FFFFFFF


def rule_of(settings: Mapping[str, object]) -> Rule:
    """Return the rule of a producer's settings; raise a ConfigError for one that is not known."""
    named = settings.get("partitioner", _USUAL)
    if named in get_args(Rule):
        return cast("Rule", named)
    rules = ", ".join(get_args(Rule))
    raise ConfigError(f"kafka: partitioner must be one of {rules}, where delivery is sequenced")


def murmur2(key: bytes) -> int:
    """Return the hash by which Kafka's own producer, the one in Java, places a key."""
    hashed = (_SEED ^ len(key)) & _MASK
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(key[at : at + 4], "little") * _M & _MASK
        part = (part ^ part >> _R) * _M & _MASK
        hashed = (hashed * _M & _MASK) ^ part
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15
