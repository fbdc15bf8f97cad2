"""Five candidates, of which one or another is killed or paused every second."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import busy, settle
from tests.integration.harvest.account import Reader, judge
from tests.integration.harvest.place import a_while, until

if TYPE_CHECKING:
    from tests.integration.harvest.load import Load
    from tests.integration.harvest.place import Place
    from tests.integration.harvest.running import Process, Spawn

CANDIDATES = 5


class Chaos:
    """Kills and replaces, pauses and wakes, as a seed has it; the leader more often than not."""

    def __init__(self, place: Place, spawn: Spawn, delivery: str, seed: int) -> None:
        self._spawn, self._settings = spawn, busy(place, delivery)
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._candidates = [self._new() for _ in range(CANDIDATES)]
        self._paused: set[int] = set()

    def disturb(self) -> None:
        """Do something to one of them."""
        place = self._random.choice([self._leader(), self._random.randrange(CANDIDATES)])
        if place in self._paused:
            self._wake(place)
        elif self._random.random() < 0.4:
            self._candidates[place].kill()
            self._candidates[place] = self._new()
        else:
            self._candidates[place].signal(signal.SIGSTOP)
            self._paused.add(place)

    def heal(self) -> None:
        """Wake all that are paused."""
        for place in list(self._paused):
            self._wake(place)

    def _wake(self, place: int) -> None:
        self._candidates[place].signal(signal.SIGCONT)
        self._paused.discard(place)

    def _leader(self) -> int:
        def last_epoch(place: int) -> int:
            told = self._candidates[place].find("LeaderAcquired")
            return int(told[-1]["epoch"]) if told else 0

        return max(range(CANDIDATES), key=last_epoch)

    def _new(self) -> Process:
        return self._spawn(self._settings)


@pytest.mark.parametrize(
    ("delivery", "seed", "seconds"),
    [
        ("exactly_once", 1, 6.0),
        pytest.param("at_least_once", 2, 6.0, marks=pytest.mark.long),
        pytest.param("exactly_once", 3, 30.0, marks=pytest.mark.long),
        pytest.param("at_least_once", 4, 30.0, marks=pytest.mark.long),
    ],
)
def test_chaos(
    place: Place, spawn: Spawn, load: Load, delivery: str, seed: int, seconds: float
) -> None:
    """Whoever reads during and after sees all messages, in order, and once if so promised."""
    reader = Reader(place.kafka, place.topic)
    chaos = Chaos(place, spawn, delivery, seed)
    until(lambda: place.events("tour_started"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        a_while(1)
        chaos.disturb()
    chaos.heal()
    load.stop()
    settle(place, delivery, 90)
    until(lambda: len({m.value for m in reader.found}) == len(place.stashed))
    judge(place.stashed, reader.stop(), delivery)
    epochs = [event.epoch or 0 for event in place.events("acquired")]
    assert epochs == sorted(set(epochs))
