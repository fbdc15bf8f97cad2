"""Some candidates, of which one or another is killed or paused again and again."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.faults import busy, settle
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.load import Load
    from tests.support.place import Place
    from tests.support.running import Process, Spawn

LONG = pytest.mark.long


class Chaos:
    """Kills and replaces, pauses and wakes, as a seed has it; the leader more often than not."""

    def __init__(self, spawn: Spawn, settings: dict[str, Any], candidates: int, seed: int) -> None:
        self._spawn, self._settings = spawn, settings
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._candidates = [self._new() for _ in range(candidates)]
        self._paused: set[int] = set()

    def disturb(self) -> None:
        """Do something to one of them."""
        anyone = self._random.randrange(len(self._candidates))
        place = self._random.choice([self._leader(), anyone])
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

        return max(range(len(self._candidates)), key=last_epoch)

    def _new(self) -> Process:
        return self._spawn(self._settings)


@pytest.mark.parametrize(
    ("delivery", "candidates", "seed", "times"),
    [
        ("exactly_once", 5, 1, 6),
        ("exactly_once", 2, 5, 6),
        ("sequenced", 5, 9, 6),
        pytest.param("at_least_once", 5, 2, 6, marks=LONG),
        pytest.param("at_least_once", 2, 6, 6, marks=LONG),
        pytest.param("exactly_once", 5, 3, 30, marks=LONG),
        pytest.param("exactly_once", 2, 7, 30, marks=LONG),
        pytest.param("sequenced", 5, 10, 30, marks=LONG),
        pytest.param("sequenced", 2, 11, 30, marks=LONG),
        pytest.param("at_least_once", 5, 4, 30, marks=LONG),
        pytest.param("at_least_once", 2, 8, 30, marks=LONG),
    ],
)
def test_chaos(  # noqa: PLR0913, PLR0917 - parameters beside fixtures
    place: Place,
    spawn: Spawn,
    load: Load,
    delivery: str,
    candidates: int,
    seed: int,
    times: int,
) -> None:
    """Whoever reads during and after sees all messages, in order, and once if so promised."""
    chaos = Chaos(spawn, busy(place, delivery), candidates, seed)
    until(lambda: place.events("tour_started"))
    for _ in range(times):
        load.goes_on(500)
        chaos.disturb()
    chaos.heal()
    load.stop()
    settle(place, delivery, 90)
    epochs = [event.epoch or 0 for event in place.events("acquired")]
    assert epochs == sorted(set(epochs))
