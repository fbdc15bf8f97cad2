"""A part of a home: one server, and what `up`, `status` and `down` ask of it, whichever it is.

PostgreSQL and each node of Kafka are parts of every home. Others are added by `up --with`; they are
listed in `added`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from harvest_dagster.embedded.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.process import Daemon

    Say = Callable[[str], None]


@dataclass(frozen=True)
class Site:
    """Where a part is set up: a home, what it remembers, and the Java of this machine."""

    home: Path
    state: HomeState

    @cached_property
    def java(self) -> str:
        """Return the path of Java, which is looked for when a part first needs it."""
        return find_java()


class Part(Protocol):
    """One server of a home."""

    @property
    def name(self) -> str:
        """Return its name, which its log and its port for clients have too."""

    def ports(self, state: HomeState) -> dict[str, int]:
        """Return the ports that it listens on, by their names."""

    def daemon(self, home: Path) -> Daemon:
        """Return how it is recognised, and how it is asked to stop."""

    def have_programs(self, site: Site, say: Say) -> None:
        """Make sure that the programs it is run by are there; download them if need be."""

    def configure(self, site: Site) -> None:
        """Write what it reads when it starts, at each start, because its ports may have changed."""

    def is_set_up(self, home: Path) -> bool:
        """Return whether its data is there, and whole."""

    def set_up(self, site: Site) -> None:
        """Make its data."""

    def command(self, site: Site) -> list[str]:
        """Return its command line."""

    def answers(self, site: Site) -> bool:
        """Return whether it does what clients ask of it."""


class AddedPart(Part, Protocol):
    """A part that `up --with` added to a home, where a folder has its name, and all its data."""

    @property
    def doors(self) -> tuple[str, ...]:
        """Return the names of the ports that it needs."""

    def address(self, state: HomeState) -> dict[str, str | int]:
        """Return what a client needs in order to reach it, the password included."""

    def leftovers(self, state: HomeState) -> list[Path]:
        """Return the files that it leaves outside of the home when it ends."""
