"""What a room brings to those above it, as data: the command line and Dagster make theirs of it.

A room describes itself in `room.py` of its package, which `rooms.ROOMS` names:

    ROOM = Room(word="counter", events={...}, led=counting, assets=(...), checks=(...))

Nothing in a description imports Dagster, and nothing is connected to before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import psycopg
from pydantic import BaseModel

from harvest_dagster.ledger import events
from harvest_dagster.rooms import ROOMS, folder
from harvest_dagster.work.led import Led
from harvest_dagster.work.status import WorkStatus


@dataclass(frozen=True, slots=True)
class AssetText:
    """An asset of whatever is led: its name, what is seen of it, and what it comes behind."""

    name: str
    says: str
    kinds: frozenset[str] = frozenset({"postgres"})
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckText:
    """A check of an asset: what is so while it is green."""

    asset: str
    name: str
    says: str


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


@dataclass(frozen=True, slots=True)
class Did:
    """What a verb has done: lines for people, and facts by their names."""

    lines: tuple[str, ...]
    facts: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verb:
    """What an operator can do to whatever is led: its name, its options, and how it is done."""

    name: str
    says: str
    options: type[BaseModel]
    act: Callable[[Call, Any], Did]


@dataclass(frozen=True, slots=True)
class Room:
    """What a room brings: events, and where it leads something, all that others make of that."""

    word: str
    """What it leads, as its group of commands is called."""
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
    judge: Callable[[Led, WorkStatus], Iterable[Verdict]] = lambda _led, _status: ()
    """Judges what is to be seen at one moment; each check at most once."""
    verbs: tuple[Verb, ...] = ()


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
