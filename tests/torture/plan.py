"""What the nemesis does and when: made from a seed, written to a file, read back from it.

Every few seconds it strikes with one to three faults at once, each at another target. A fault
lasts for some seconds, and then it is healed; a target is left alone while it recovers. At most one
broker of three is in trouble, but now and then two are, and nothing can be published.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

CANDIDATES, BROKERS = 3, 3
RATE, WRITERS = 500.0, 4
"""Messages a second, at most, of how many writers together."""
LEADER = "leader"
CODE_SERVER, RUN = "code server", "run"
PROGRAMS, DAGSTER = "programs", "dagster"
"""What stands for election: three programs with a harvest each, or one Dagster."""
_CANDIDATES = (LEADER, LEADER, *(f"candidate-{number}" for number in range(1, CANDIDATES + 1)))
_BROKERS = tuple(f"kafka-{number}" for number in range(1, BROKERS + 1))
_LINKS = (*_CANDIDATES, "writers")
_FIRST_SECONDS = 5.0
_TWO_BROKERS = 0.15
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: after so many seconds, for so long."""

    at: float
    kind: str
    target: str
    seconds: float = 0.0
    amount: float = 0.0


class _Kind(NamedTuple):
    name: str
    targets: tuple[str, ...]
    weight: int
    seconds: tuple[float, float]
    rest: float
    amounts: tuple[float, ...] = (0.0,)


_KINDS = (
    _Kind("kill", _CANDIDATES, 26, (0, 3), 8),
    _Kind("kill", _BROKERS, 14, (0, 5), 15),
    _Kind("kill", ("postgres",), 7, (0, 3), 15),
    _Kind("pause", _CANDIDATES, 12, (0.5, 12), 6),
    _Kind("pause", _BROKERS, 6, (0.5, 12), 10),
    _Kind("pause", ("postgres",), 4, (0.5, 8), 10),
    _Kind("restart", _CANDIDATES, 5, (0, 0), 15),
    _Kind("restart", _BROKERS, 4, (0, 2), 30),
    _Kind("restart", ("postgres",), 3, (0, 2), 15),
    _Kind("cut", _LINKS, 9, (0, 0), 2),
    _Kind("refuse", _LINKS, 4, (0.5, 9), 5),
    _Kind("stall", _LINKS, 7, (0.5, 9), 5),
    _Kind("delay", _LINKS, 5, (2, 8), 3, (0.01, 0.05, 0.3)),
    _Kind("clock", _CANDIDATES, 4, (2, 10), 3, (-24 * _HOUR, -7, 7, _HOUR, 8760 * _HOUR)),
    _Kind("limit", ("big",), 4, (4, 12), 10, (50_000, 300_000)),
)

_OF_DAGSTER = (
    _Kind("kill", (RUN,), 12, (0, 0), 15),
    _Kind("kill", (CODE_SERVER,), 8, (0, 0), 30),
    _Kind("terminate", (RUN,), 6, (0, 0), 20),
    _Kind("reload", (CODE_SERVER,), 6, (0, 0), 30),
    _Kind("kill", _BROKERS, 8, (0, 5), 15),
    _Kind("pause", _BROKERS, 4, (0.5, 8), 10),
    _Kind("kill", ("postgres",), 4, (0, 2), 30),
    _Kind("cut", ("writers",), 4, (0, 0), 2),
)
_KINDS_OF = {PROGRAMS: _KINDS, DAGSTER: _OF_DAGSTER}
_BETWEEN_OF = {PROGRAMS: (2.0, 7.0), DAGSTER: (8.0, 20.0)}
"""A Dagster takes longer to start what was killed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one run does to the parts, and the load; `small` asks for small batches."""

    seed: int
    seconds: float
    delivery: str
    faults: tuple[Fault, ...]
    plant: str | None = None
    small: bool = False
    rate: float = RATE
    writers: int = WRITERS
    variant: str = PROGRAMS

    def write(self, file: Path) -> None:
        """Leave it for a replay."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Plan:
        """Take it from a file."""
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**found | {"faults": tuple(Fault(**each) for each in found["faults"])})


def make(
    seed: int, seconds: float, delivery: str, plant: str | None, variant: str = PROGRAMS
) -> Plan:
    """Make a plan; for a planted bug, one that brings out what that bug does."""
    faults = _strikes(seed, seconds, variant) if plant is None else _PROVOKING[plant](seconds)
    small = bool(seed % 2) and not plant
    return Plan(seed, seconds, delivery, tuple(faults), plant, small, variant=variant)


def _strikes(seed: int, seconds: float, variant: str) -> Iterator[Fault]:
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    busy: dict[str, float] = {}
    at = _FIRST_SECONDS
    while at < seconds:
        brokers = 2 if dice.random() < _TWO_BROKERS else 1
        for _ in range(dice.choices((1, 2, 3), (6, 3, 1))[0]):
            fault, rest = _fault(dice, at, _KINDS_OF[variant])
            in_trouble = [b for b in _BROKERS if busy.get(b, 0.0) > at]
            too_many = fault.target in _BROKERS and len(in_trouble) >= brokers
            if busy.get(fault.target, 0.0) <= at and not too_many:
                busy[fault.target] = at + fault.seconds + rest
                yield fault
        at = round(at + dice.uniform(*_BETWEEN_OF[variant]), 2)


def _fault(dice: random.Random, at: float, kinds: Sequence[_Kind]) -> tuple[Fault, float]:
    kind = dice.choices(kinds, [each.weight for each in kinds])[0]
    lasts = round(dice.uniform(*kind.seconds), 2)
    target, amount = dice.choice(kind.targets), dice.choice(kind.amounts)
    return Fault(at, kind.name, target, lasts, amount), kind.rest


def _sleepers(seconds: float) -> Iterator[Fault]:
    """A leader sleeps until another leads, and wakes: only fences hold it off."""
    for at in range(5, int(seconds), 14):
        yield Fault(at, "pause", LEADER, 9.0)


def _killed_in_midst(seconds: float) -> Iterator[Fault]:
    """A leader is killed while Kafka keeps it waiting for an acknowledgement."""
    for number, at in enumerate(range(5, int(seconds), 14)):
        yield Fault(at, "pause", _BROKERS[number % BROKERS], 3.0)
        yield Fault(at + 1.5, "kill", LEADER)


def _nothing(_seconds: float) -> Iterator[Fault]:
    """Commits that are late are enough."""
    return iter(())


_PROVOKING = {
    "fence-off": _sleepers,
    "purge-early": _killed_in_midst,
    "no-gap-watch": _nothing,
}
