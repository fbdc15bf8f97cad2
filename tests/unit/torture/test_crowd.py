"""A run's writers and readers are watched: without one there is nothing to account for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.place import Place
from tests.support.waiting import until
from tests.torture import plan as plans
from tests.torture.crowd import Crowd

PLAN = replace(plans.make(1, 10, "exactly_once", None), writers=1)


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    """A crowd at work where no server is."""
    place = Place.__new__(Place)
    place.kafka = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    crowd = Crowd(PLAN, place, "postgresql://127.0.0.1:1/none", tmp_path)
    crowd.start()
    yield crowd
    crowd.close()


def process(module: str) -> psutil.Process:
    """Find one of the crowd, as soon as it says by its command line who it is."""
    found: list[psutil.Process] = []

    def is_there() -> bool:
        children = psutil.Process().children()
        found[:] = [each for each in children if f"tests.torture.{module}" in each.cmdline()]
        return bool(found)

    until(is_there, what=module)
    return found[0]


@pytest.mark.parametrize(
    ("module", "told"),
    [("writer", "writer-1: exit code -9"), ("reader", "read_committed during: exit code -9")],
)
def test_one_that_dies(crowd: Crowd, module: str, told: str) -> None:
    """It is told who has died, and how."""
    assert crowd.died() == []
    process(module).kill()
    until(crowd.died, what="it is seen")
    assert crowd.died() == [told]


def test_who_is_told_to_end(crowd: Crowd) -> None:
    """Writers that end because they were told have not died, though nothing was acknowledged."""
    until(crowd.journal, what="a transaction failed")
    crowd.end_writing()
    assert crowd.died() == []
    assert set(crowd.journal().values()) == {"undone"}
