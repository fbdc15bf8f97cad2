"""What is led, and the work that its leader does: all that the rooms below must know of either.

    Led      what is led: its name, how its leader is elected, how its work is made, what the
             figures of its work mean
    Work     what a leader does for one shard, from its lease to the end of it

A harvest is one. The runner, the hand-over to a process of its own, the tours' rows, the command
`run`, the health page and the metrics know nothing else of what they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.ledger.lease import Lease

Trusted: TypeAlias = Callable[[], bool]
"""Returns whether begun work may still be written; it never blocks."""
Refreshed: TypeAlias = Callable[[Lease], None]
"""Is told of the lease under its new epoch, when the work has begun one."""


class Work(Protocol):
    """What a leader does for one shard; made for one term, and run once."""

    @property
    def lease(self) -> Lease:
        """The lease, under the epoch that the work has by now."""

    @property
    def found(self) -> Mapping[str, int] | None:
        """What the last leader had left, once that is settled and the work is under way."""

    @property
    def figures(self) -> Mapping[str, int]:
        """How far it has come, by the names of its figures; any thread may ask."""

    @property
    def held(self) -> Mapping[str, str]:
        """What can't be worked on just now, each with the reason; any thread may ask."""

    def run(self) -> None:
        """Work until the term ends, on the caller's thread; raise a FencedError if it was lost."""

    def drain(self, seconds: float) -> None:
        """Begin nothing more, and end when what was begun is settled, or the time is over.

        It does not block. Whoever asks again may shorten that time, and never put it off.
        """

    def abort(self) -> None:
        """End at once, without another write; it does not block."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a work: a count that only grows, or else what is so just now."""

    name: str
    says: str
    counts: bool = True
    unit: str = "records"
    rare: bool = False
    """Whether it is worth a word only where it is not 0."""

    @property
    def metric(self) -> str:
        """Its name for Prometheus."""
        return "_".join(filter(None, ["harvest", self.name, self.unit]))


class Led(Protocol):
    """What is led; frozen, and cheap to make: it connects to nothing."""

    @property
    def name(self) -> str:
        """Its name, in the lease, in events, in Dagster."""

    @property
    def postgres_url(self) -> str:
        """Where PostgreSQL is; never print it."""

    @property
    def figures(self) -> Sequence[Figure]:
        """What the figures of its works mean; the first says how much was done."""

    @property
    def candidate(self) -> CandidateSettings:
        """How its leader is elected; its room adds the word."""

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Work:
        """Make the work of a term."""


def done(led: Led, figures: Mapping[str, int]) -> int:
    """Return the figure that says how much was done."""
    return figures.get(led.figures[0].name, 0)


def added(led: Led, ended: Mapping[str, int], running: Mapping[str, int]) -> dict[str, int]:
    """Add up what works that have ended counted, and one that runs, with its figures of now."""
    return {
        figure.name: running.get(figure.name, 0)
        + (ended.get(figure.name, 0) if figure.counts else 0)
        for figure in led.figures
    }
