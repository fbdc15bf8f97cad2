"""From when until when each candidate trusted that it leads, by the journals that they keep.

The clock is the machine's, which all candidates share and no fault moves. A candidate that is
killed or paused leaves its term's end open: then it is where its trust ends by itself, since
whoever wakes behind it must not write any more, whenever it learns that it was fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, NamedTuple, TextIO

from harvest_dagster.clock import now
from harvest_dagster.election.terms import Terms
from harvest_dagster.ledger.lease import Lease
from tests.torture.plants import put


class Trust(NamedTuple):
    """A term as its leader trusted it."""

    begin: float
    end: float


def journal_trust(journal: TextIO) -> None:
    """Have this process write down what it trusts."""
    begin, extend = Terms.begin, Terms.extend

    def note(word: str, epoch: int, at: float) -> None:
        journal.write(f"{word} {epoch} {at}\n")
        journal.flush()

    def begun(self: Terms, lease: Lease, until: float) -> bool:
        note("begin", lease.epoch, now())
        note("until", lease.epoch, until)
        held = begin(self, lease, until)
        if not held:
            note("end", lease.epoch, now())
        return held

    def extended(self: Terms, lease: Lease, until: float) -> bool:
        still = extend(self, lease, until)
        if still:
            note("until", lease.epoch, until)
        return still

    put(Terms, "begin", begun)
    put(Terms, "extend", extended)
    put(Terms, "end", _ending(Terms.end, note))
    put(Terms, "_fence", _ending(Terms._fence, note))  # noqa: SLF001 - the bench looks inside


def _ending(
    end: Callable[..., Lease | None], note: Callable[[str, int, float], None]
) -> Callable[..., Lease | None]:
    def ended(self: Terms, *given: Any) -> Lease | None:
        lease = end(self, *given)
        if lease is not None:
            note("end", lease.epoch, now())
        return lease

    return ended


def read_trust(lines: Iterable[str]) -> list[Trust]:
    """Read the terms of one candidate's journal."""
    terms: list[Trust] = []
    for word, _epoch, at in (line.split() for line in lines):
        if word == "begin":
            terms.append(Trust(float(at), float(at)))
        elif word == "until":
            terms[-1] = terms[-1]._replace(end=max(terms[-1].end, float(at)))
        else:
            terms[-1] = terms[-1]._replace(end=min(terms[-1].end, float(at)))
    return terms


def overlap(terms: Iterable[Trust]) -> float:
    """Tell for how many seconds two terms were trusted at once."""
    pairs = combinations(sorted(terms), 2)
    return sum(max(0.0, min(one.end, two.end) - two.begin) for one, two in pairs)
