"""The account of a run: what was promised, what was seen, and which promise was broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from statistics import median
from typing import Any, NamedTuple

from tests.torture.nemesis import Struck
from tests.torture.tally import BUCKET_MS, FAULTS

COMMITTED, PLAIN = "read_committed", "read_uncommitted"
DRAIN_SECONDS = 120.0
"""Within so long after all is healed everything has gone out."""


@dataclass(slots=True)
class Seen:
    """What one reader saw, against the ledger."""

    messages: int
    lost: int
    invented: int
    doubled: int
    repeated: int
    disordered: int
    broken: int
    strayed: int
    outdated: int
    epochs: int
    samples: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, told: Mapping[str, Any], ledger: Mapping[int, int]) -> Seen:
        """Judge a reader's tally by what was committed."""
        seen = {int(tx): int(bits, 16) for tx, bits in told["seen"].items()}
        whole = {tx: (1 << count) - 1 for tx, count in ledger.items()}
        return cls(
            told["messages"],
            sum((bits & ~seen.get(tx, 0)).bit_count() for tx, bits in whole.items()),
            sum((bits & ~whole.get(tx, 0)).bit_count() for tx, bits in seen.items()),
            **{fault: told[fault] for fault in FAULTS},
            epochs=told["epochs"],
            samples=told["samples"],
        )

    def faults(self, *, once: bool, ordered: bool) -> dict[str, int]:
        """Tell which promises are broken, by how many messages."""
        faults = {"lost": self.lost, "invented": self.invented, "not whole": self.broken}
        faults |= {"keys in two partitions": self.strayed}
        if ordered:
            faults |= {"out of order": self.disordered + (0 if once else self.doubled)}
        if once:
            faults |= {"doubled": self.doubled + self.repeated, "of an old epoch": self.outdated}
        return {name: count for name, count in faults.items() if count}


@dataclass(slots=True)
class Account:
    """All that is told of a run."""

    seed: int
    seconds: float
    delivery: str
    plant: str | None
    outcomes: dict[str, int]
    messages: int
    vanished: int
    risen: int
    readers: dict[str, Seen]
    stale_writes: int
    overlap_written_seconds: float
    overlap_trusted_seconds: float
    epochs: int
    terms: int
    gave_up: list[str]
    died: list[str]
    unclean: list[str]
    drained_seconds: float | None
    left: dict[str, int]
    parked: int
    faults: dict[str, dict[str, Any]]
    struck: int
    missed: int
    passed_over: int
    kills: dict[str, int]
    longest_stop_seconds: float
    stops: int

    @property
    def broken(self) -> dict[str, int]:
        """The promises that were broken, and how often; none if all were kept."""
        broken = {
            f"{fault} ({name})": count
            for name in self.readers
            for fault, count in self.faults_of(name).items()
        }
        others = {
            "acknowledged by PostgreSQL, and not there": self.vanished,
            "rolled back, and there": self.risen,
            "writes of a deposed leader": self.stale_writes,
            "overlap of leaders, s, by what they wrote": ceil(self.overlap_written_seconds),
            "overlap of leaders, s, by their trust": ceil(self.overlap_trusted_seconds),
            "candidates that gave up": len(self.gave_up),
            "candidates that did not end well": len(self.unclean),
            "writers or readers that died": len(self.died),
            "no transaction was acknowledged": int(not self.outcomes.get("acknowledged")),
            f"not drained within {DRAIN_SECONDS:.0f} s": int(self.drained_seconds is None),
        }
        return broken | {what: count for what, count in others.items() if count}

    def faults_of(self, name: str) -> dict[str, int]:
        """What a reader saw that it should not: who reads all sees what was aborted, too."""
        once, committed = self.delivery == "exactly_once", name.startswith(COMMITTED)
        return self.readers[name].faults(once=once and committed, ordered=committed or not once)

    @property
    def measured(self) -> int:
        """Of how many faults it is known when all flowed again."""
        return int(sum(found["count"] for found in self.faults.values()))

    def as_dict(self) -> dict[str, Any]:
        """The account as JSON may have it."""
        return asdict(self) | {"measured": self.measured, "broken": self.broken}


class _Span(NamedTuple):
    """A fault from its beginning to its healing, and until all flowed again."""

    label: str
    began: float
    ended: float
    flows: float

    def is_alone(self, others: list[_Span]) -> bool:
        """Whether no other was in the way of this one's being got over."""
        over = max(self.ended, self.flows)
        return not any(
            other is not self and other.began < over and max(other.ended, other.flows) > self.began
            for other in others
        )


def stops_of(told: Mapping[str, Any], until: float) -> list[float]:
    """The times in which a reader got nothing, while there were writers."""
    return [min(end, until) - begin for begin, end in told["stops"] if begin < until]


def recoveries(
    struck: Iterable[Struck], first: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, Any]]:
    """For each kind of fault: how often, how long it lasted, and how long until all flowed again.

    That is from its beginning until every partition delivered what was stashed after it. The median
    is of those that struck alone: nothing else was wrong from the beginning of one to its end. A
    fault after which some partition got nothing more, since the writers ended, is not measured.
    """
    earliest = {p: _earliest_after(found) for p, found in first.items()}
    spans: list[_Span] = []
    for each in struck:
        at = int(each.began * 1000) // BUCKET_MS + 1
        delivered = [one.get(at) for one in earliest.values()]
        if all(delivered):
            flows = max(ms for ms in delivered if ms) / 1000
            spans.append(_Span(each.label, each.began, each.ended, flows))
    labels = sorted({span.label for span in spans})
    return {label: _summary([s for s in spans if s.label == label], spans) for label in labels}


def _earliest_after(found: Mapping[str, int]) -> dict[int, int]:
    """For each time, the first delivery of what was stashed then or later."""
    times = {int(bucket): at for bucket, at in found.items()}
    if not times:
        return {}
    earliest: dict[int, int] = {}
    best = max(times.values())
    for bucket in range(max(times), min(times) - 1, -1):
        best = min(best, times.get(bucket, best))
        earliest[bucket] = best
    return earliest


def _summary(spans: list[_Span], all_: list[_Span]) -> dict[str, Any]:
    alone = [round(span.flows - span.began, 2) for span in spans if span.is_alone(all_)]
    found = {
        "count": len(spans),
        "lasted_median": round(median(span.ended - span.began for span in spans), 2),
        "worst": round(max(span.flows - span.began for span in spans), 2),
        "alone": len(alone),
        "alone_each": alone,
    }
    return found | ({"alone_median": round(median(alone), 2)} if alone else {})
