"""What a reader has seen, folded as it comes: a run has more messages than memory should hold.

repeated     a message that was seen before, right behind itself in its lane, or without a lane
doubled      a message that was seen before, and others of its lane since
disordered   a message that comes behind a later one of its lane, and was not seen before
broken       not as it was made
strayed      a message of a lane, in another partition than the one before
outdated     a message behind one of its partition that was produced under a later epoch
seen         for each transaction the numbers of its messages, as bits
epochs       those under which messages were produced, as far as they say so
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.torture.proof import Proof, epoch_of, proof_of

BUCKET_MS = 100
FAULTS = ("doubled", "repeated", "disordered", "broken", "strayed", "outdated")
_SAMPLES = 5


@dataclass(slots=True)
class Tally:
    """One reader's."""

    messages: int = 0
    doubled: int = 0
    repeated: int = 0
    disordered: int = 0
    broken: int = 0
    strayed: int = 0
    outdated: int = 0
    samples: list[str] = field(default_factory=list)
    epochs: set[int] = field(default_factory=set)
    seen: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _last: dict[tuple[str, bytes], int] = field(default_factory=lambda: defaultdict(int))
    _homes: dict[tuple[str, bytes], int] = field(default_factory=dict)
    _epochs: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def take(self, polled: Any) -> Proof:
        """Take the next message of a partition."""
        proof, whole = proof_of(polled)
        self.messages += 1
        if not whole:
            self._found("broken", polled, proof)
        self._see_epoch(polled, proof)
        bit = 1 << proof.number
        known = bool(self.seen[proof.tx] & bit)
        self.seen[proof.tx] |= bit
        if polled.key() is None:
            self.repeated += known
        else:
            self._see_lane(polled, proof, known=known)
        return proof

    def _see_lane(self, polled: Any, proof: Proof, *, known: bool) -> None:
        lane = (polled.topic(), polled.key())
        last = self._last[lane]
        if known:
            self._found("repeated" if proof.place == last else "doubled", polled, proof)
        elif proof.place <= last:
            self._found("disordered", polled, proof)
        self._last[lane] = max(last, proof.place)
        if self._homes.setdefault(lane, polled.partition()) != polled.partition():
            self._found("strayed", polled, proof)

    def _see_epoch(self, polled: Any, proof: Proof) -> None:
        partition, epoch = (polled.topic(), polled.partition()), epoch_of(polled)
        if epoch < self._epochs[partition]:
            self._found("outdated", polled, proof)
        self.epochs |= {epoch} - {0}
        self._epochs[partition] = max(self._epochs[partition], epoch)

    @property
    def distinct(self) -> int:
        """How many messages there were, however often."""
        return sum(bits.bit_count() for bits in self.seen.values())

    def told(self) -> dict[str, Any]:
        """The tally as JSON may have it."""
        names = ("messages", *FAULTS, "samples")
        told = {name: getattr(self, name) for name in names}
        told |= {"epochs": len(self.epochs)}
        return told | {"seen": {str(tx): f"{bits:x}" for tx, bits in self.seen.items()}}

    def _found(self, fault: str, polled: Any, proof: Proof) -> None:
        setattr(self, fault, getattr(self, fault) + 1)
        if fault != "repeated" and len(self.samples) < _SAMPLES:
            place = f"{polled.topic()}/{polled.partition()}@{polled.offset()}"
            lane = (polled.topic(), polled.key())
            self.samples.append(
                f"{fault}: {place} key {polled.key()!r} number {proof.place} after"
                f" {self._last.get(lane, 0)}, transaction {proof.tx}/{proof.number}"
                f", epoch {epoch_of(polled)}"
            )
