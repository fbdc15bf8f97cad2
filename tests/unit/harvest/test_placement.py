"""In which partition a record is."""

from __future__ import annotations

import pytest

from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.placement import Placement, Rule, murmur2, rule_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2(key: bytes, hashed: int) -> None:
    """As Kafka's own tests have it, where it is a signed number."""
    assert murmur2(key) == hashed % 2**32


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("consistent", [0, 0]),
        ("consistent_random", [3, 3]),
        ("murmur2", [(murmur2(b"") & 0x7FFFFFFF) % 4] * 2),
        ("murmur2_random", [3, (murmur2(b"") & 0x7FFFFFFF) % 4]),
    ],
)
def test_no_key(rule: Rule, expected: list[int]) -> None:
    """Without one records take turns, by their clocks; an empty one is what it is to librdkafka."""
    placement = Placement(rule, 1, {"topic": 4})
    assert [placement.place("topic", key, 7) for key in (None, b"")] == expected


def test_a_key_is_where_it_is() -> None:
    """Whatever its clock, as text or as bytes; and as the claim says, which is kept as JSON."""
    placement = Placement("consistent_random", 2, {"one": 4, "two": 100})
    again = Placement.read(placement.kept())
    assert again == placement
    for topic in ("one", "two"):
        assert len({again.place(topic, key, n) for n in range(9) for key in ("k", b"k")}) == 1


def test_rules() -> None:
    """That of the user's settings, librdkafka's own by default; no other is known here."""
    assert rule_of({}) == "consistent_random"
    assert rule_of({"partitioner": "murmur2_random"}) == "murmur2_random"
    with pytest.raises(ConfigError, match="partitioner must be one of consistent, "):
        rule_of({"partitioner": "fnv1a"})
