"""What a session may send when."""

from __future__ import annotations

import pytest

from harvest_dagster.harvest.partition_lanes import SILENCE_SECONDS, PartitionLanes

HERE, THERE = ("topic", 0), ("topic", 1)


class Clock:
    """A time that is set."""

    now = 0.0

    def __call__(self) -> float:
        """Return it."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The time of a test."""
    return Clock()


@pytest.fixture
def lanes(clock: Clock) -> PartitionLanes[int]:
    """The lanes of a session."""
    return PartitionLanes(clock)


def test_the_first_goes_alone(lanes: PartitionLanes[int]) -> None:
    """In each partition; when it is acknowledged the others go, in their order."""
    assert [lanes.enter(HERE, n) for n in range(4)] == [True, False, False, False]
    assert lanes.enter(THERE, 9)
    assert lanes.flying == 2
    assert lanes.acknowledged(HERE) == [1, 2, 3]
    assert lanes.enter(HERE, 4)
    assert lanes.flying == 5


def test_after_a_silence(lanes: PartitionLanes[int], clock: Clock) -> None:
    """The broker may have forgotten the producer: the next one goes alone again."""
    lanes.enter(HERE, 1)
    lanes.acknowledged(HERE)
    clock.now = SILENCE_SECONDS - 1
    assert [lanes.enter(HERE, n) for n in (2, 3)] == [True, True]
    lanes.acknowledged(HERE)
    lanes.acknowledged(HERE)
    clock.now += SILENCE_SECONDS
    assert [lanes.enter(HERE, n) for n in (4, 5)] == [True, False]
    assert lanes.acknowledged(HERE) == [5]


def test_one_by_one(clock: Clock) -> None:
    """The next one goes when it is known what became of the last."""
    lanes = PartitionLanes[int](clock, one_by_one=True)
    assert [lanes.enter(HERE, n) for n in range(3)] == [True, False, False]
    assert [lanes.acknowledged(HERE) for _ in range(3)] == [[1], [2], []]
    assert lanes.flying == 0


def test_a_lane_that_is_closed(lanes: PartitionLanes[int]) -> None:
    """Nothing goes out behind a record that was given up, whenever it came."""
    lanes.enter(HERE, 1)
    lanes.acknowledged(HERE)
    assert [lanes.enter(HERE, n) for n in (2, 3)] == [True, True]
    lanes.close(HERE)
    assert (lanes.is_closed(HERE), lanes.flying) == (True, 1)
    assert not lanes.enter(HERE, 4)
    assert lanes.acknowledged(HERE) == []
    assert lanes.enter(THERE, 5)
