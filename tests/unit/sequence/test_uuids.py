"""What messages are called: UUIDs and their clocks."""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster.errors import MessageError
from harvest_dagster.sequence import ticks, uuids
from harvest_dagster.sequence.publisher import Publisher
from harvest_dagster.sequence.ticks import Clock
from harvest_dagster.sequence.uuids import Flags

SECOND = 1_000_000_000
NODE = bytes.fromhex("010203040506")
FLAGS = st.integers(0, uuids.LARGEST_FLAGS)
PRODUCERS = st.binary(min_size=6, max_size=6)
A_TIME = 1_567_304_621_981_273_734
"""That of gazette's own test of a UUID."""


def test_a_clock_ticks_and_follows_time() -> None:
    """A tick is a microsecond; a time counts to 100 ns, and one that has passed changes nothing."""
    clock = Clock()
    assert [clock.tick(), clock.tick()] == [160, 320]
    assert ticks.at(12 * SECOND + 300) == ticks.at(12 * SECOND + 399)
    clock.update(12 * SECOND + 300)
    assert ticks.unix_ns(clock.tick()) == 12 * SECOND + 1300
    before = clock.value
    clock.update(11 * SECOND)
    assert clock.value == before


def test_a_uuid_as_gazette_makes_it() -> None:
    """To the byte."""
    clock = Clock(ticks.at(A_TIME))
    clock.tick()
    made = uuids.made(NODE, clock.tick(), 682)
    assert str(uuid.UUID(bytes=made)) == "83fc2f95-cc5f-11e9-82aa-010203040506"
    identity = uuids.read(made)
    assert identity == (NODE, clock.value, 682)
    assert ticks.unix_ns(identity.clock) % SECOND == 981_275_700


@given(PRODUCERS, st.integers(1, ticks.LARGEST), FLAGS)
def test_what_is_made_is_read(producer: bytes, clock: int, flags: int) -> None:
    """Any clock, flags and producer; and it is a UUID of version 1 for all others too."""
    made = uuids.made(producer, clock, flags)
    assert uuids.read(made) == (producer, clock, flags)
    assert uuid.UUID(bytes=made).version == 1
    assert uuid.UUID(bytes=made).variant == uuid.RFC_4122


@given(st.binary(max_size=40))
def test_what_is_no_uuid(given_bytes: bytes) -> None:
    """Is refused, and whatever is not refused is made again as it was."""
    with suppress(MessageError):
        assert given_bytes in {uuids.NIL, uuids.made(*uuids.read(given_bytes))}


def test_refused() -> None:
    """Of another length, of another version, with flags that have no room."""
    with pytest.raises(MessageError, match="has 16 bytes, and this one has 15"):
        uuids.read(bytes(15))
    with pytest.raises(MessageError, match="no UUID of version 1"):
        uuids.read(uuid.uuid4().bytes)
    with pytest.raises(ValueError, match="0x400"):
        uuids.made(NODE, 1, 0x400)


def test_a_nil_uuid_counts_at_once() -> None:
    """It says nothing of who sent it, and is never a double."""
    assert uuids.read(uuids.NIL) == (bytes(6), 0, Flags.OUTSIDE)


def test_producers_are_new_and_some_are_stable() -> None:
    """All have the bit of those that are no machine's; readers never forget a stable one."""
    made = {uuids.new_producer(stable=stable) for stable in (False, True) for _ in range(50)}
    assert len(made) == 100
    assert all(producer[0] & 1 for producer in made)
    assert sum(map(uuids.is_stable, made)) == 50


def test_acknowledgements() -> None:
    """One for each destination, in the order in which they were first sent to, a tick each."""
    publisher = Publisher(NODE, now=lambda: 0)
    base = ticks.at(0)

    def clocks(*made: bytes) -> list[tuple[int, int]]:
        return [(uuids.read(one).clock - base, uuids.read(one).flags) for one in made]

    assert clocks(publisher.pending(1), publisher.pending(2)) == [(160, 1), (320, 1)]
    first = publisher.acknowledgements()
    assert (list(first), clocks(*first.values())) == ([1, 2], [(480, 2), (640, 2)])
    assert clocks(publisher.pending(3), publisher.pending(1)) == [(800, 1), (960, 1)]
    assert clocks(*publisher.acknowledgements().values()) == [(1120, 2), (1280, 2)]
    assert publisher.acknowledgements() == {}
    assert clocks(publisher.committed()) == [(1440, 0)]
