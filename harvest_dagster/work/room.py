"""What a room brings to those above it, as data: the command line and Dagster make theirs of it.

A room describes itself in `room.py` of its package, which `rooms.ROOMS` names:

    ROOM = Room(word="counter", events={...}, led=counting, assets=(...), checks=(...))

Nothing in a description imports Dagster, and nothing is connected to before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeAlias

import psycopg
from pydantic import BaseModel

from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.ledger import events
from harvest_dagster.rooms import ROOMS, folder
from harvest_dagster.work.led import Led
from harvest_dagster.work.status import WorkStatus, read_work_status


@dataclass(frozen=True, slots=True)
class AssetText:
    """An asset of whatever is led: its name, what is seen of it, and what it comes behind."""

    name: str
    says: str
    kinds: frozenset[str] = frozenset({"postgres"})
    behind: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """The kinds of events that are told of it, each as an observation."""
    columns: tuple[str, ...] = ("when", "what", "shard", "epoch", "holder", "why")
    """Of the table of the last of these: what every event has, or what its detail has."""


@dataclass(frozen=True, slots=True)
class CheckText:
    """A check of an asset: what is so while it is green."""

    asset: str
    name: str
    says: str
    closely: bool = False
    """Whether `inspect` finds it, and not `judge`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found; what is not `serious` is a warning."""

    asset: str
    check: str
    passed: bool
    says: str
    serious: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator's verb: on what is led, by whom, and where it says what it does."""

    led: Led
    connection: psycopg.Connection[Any]
    by: str
    say: Callable[[str], None]


Row: TypeAlias = "Mapping[str, str | int | float | bool]"
Facts: TypeAlias = "Mapping[str, str | int | float | Sequence[Row]]"
"""Facts by their names; one that is rows is a table."""


@dataclass(frozen=True, slots=True)
class Did:
    """What a verb has done: lines for people, and facts."""

    lines: Sequence[str]
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verb:
    """What an operator can do to whatever is led: its name, its options, and how it is done."""

    name: str
    says: str
    options: type[BaseModel]
    act: Callable[[Call, Any], Did]
    on_name: bool = True
    """Whether it is done to a name that is led, and not to a table that nobody may have led yet."""


def looked(connection: psycopg.Connection[Any], led: Led) -> WorkStatus:
    """Read how anything that is led does."""
    return read_work_status(connection, led.name, last_events=0)


def observed(led: Led, status: WorkStatus) -> Mapping[str, Facts]:
    """Return the figures of its works, under no asset's name: they are the first asset's."""
    first, *others = led.figures
    facts = {first.name: status.done}
    for figure in others:
        facts[figure.name.replace("_", " ")] = sum(t.figure(figure.name) for t in status.tours)
    return {"": facts}


@dataclass(frozen=True, slots=True)
class Room:
    """What a room brings: events, and where it leads something, all that others make of that."""

    word: str
    """What it leads, as its group of commands is called, and as each lease says."""
    events: Mapping[str, str] = field(default_factory=dict)
    """The kinds of what happens here, and what the detail of each says."""
    commands: str = ""
    """Where its group of commands is, as `package.module:group`; of none, one is made."""
    options: type[BaseModel] | None = None
    """What `led` must be told: the options of its commands, and the fields of its resource."""
    led: Callable[[Any], Led] | None = None
    """Makes what is led of these options."""
    assets: tuple[AssetText, ...] = ()
    checks: tuple[CheckText, ...] = ()
    look: Callable[[psycopg.Connection[Any], Any], WorkStatus] = looked
    """Reads how it does at one moment, without events: what the functions below are given."""
    judge: Callable[[Any, Any, float], Iterable[Verdict]] = lambda _led, _status, _still: ()
    """Judges that, and for how many seconds nothing was done; each check once."""
    inspect: Callable[[psycopg.Connection[Any], Any], Iterable[Verdict]] = lambda _, _led: ()
    """Judges what is looked at now and then: the checks that are found `closely`."""
    observe: Callable[[Led, Any], Mapping[str, Facts]] = observed
    """Returns what is seen of each asset; what others than the first have is told when the first of
    their facts has changed, which is one of the first asset's too."""
    waits: Callable[[Any], int] = lambda _status: 0
    """Returns how much waits to be done: while nothing does, nobody stands still."""
    about: Callable[[Any], str] = lambda _status: ""
    """Writes what a line that says how it goes ends with."""
    place: Callable[[Any], tuple[str, ...]] = lambda led: (led.name,)
    """Returns what of its database it works on: under two names that would be done twice."""
    twice: str = "all of it would be done twice"
    warnings: frozenset[str] = frozenset()
    """The kinds of events that somebody should look at, beside that a leader was fenced."""
    verbs: tuple[Verb, ...] = ()

    def candidate(self, led: Led) -> CandidateSettings:
        """Return how a leader is elected of what this room leads, under its word."""
        return replace(led.candidate, word=self.word)


def rooms() -> list[Room]:
    """Load the descriptions that there are, from the bottom up."""
    return [import_module(f"{package}.room").ROOM for package in ROOMS if _is_described(package)]


def _is_described(package: str) -> bool:
    is_this_file = package == __package__
    return not is_this_file and (folder(package) / "room.py").exists()


def kinds() -> dict[str, str]:
    """Return what can happen, and what the detail of each event says."""
    found = dict(events.KINDS)
    for room in rooms():
        found |= room.events
    return found
