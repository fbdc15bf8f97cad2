"""Places to harvest at, which are read all along, harvests at work, and servers to disturb."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.faults import new_place, own_servers
from tests.support.load import Load
from tests.support.place import Place
from tests.support.place import place as unwatched
from tests.support.reaping import reap
from tests.support.running import spawn, start_harvest, start_tour

__all__ = ["new_place", "own_servers", "reap", "spawn", "start_harvest", "start_tour", "unwatched"]


@pytest.fixture
def place(unwatched: Place) -> Iterator[Place]:
    """Give a place whose topic is read all along, through every fault."""
    with unwatched.watched():
        yield unwatched


@pytest.fixture
def load(place: Place) -> Iterator[Load]:
    """Stash all the time."""
    running = Load(place)
    yield running
    running.stop()
