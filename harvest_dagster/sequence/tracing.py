"""What a sequencer makes of messages, one line of JSON for each: to see why one did not come.

    {"journal": "j", "producer": "A", "clock": 1, "flags": "CONTINUE", "begin": 0, "end": 1}
    {"outcome": "ContinueBeginSpan", "emitted": []}

A line `{"checkpoint": {"horizon_ns": 0}}` shows what is remembered, and `{"restore": true}` goes on
from there as another process would. Producers are names here, which nobody takes for stable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harvest_dagster.errors import MessageError
from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.states import Checkpoint
from harvest_dagster.sequence.ticks import LARGEST
from harvest_dagster.sequence.uuids import LARGEST_FLAGS, NIL, Flags

_PRODUCER_BYTES = 6
_NOBODY = NIL[:_PRODUCER_BYTES]
_RANDOM = b"\x01"
_LARGEST_OFFSET = (1 << 63) - 1


def outcome_of(sequencer: Sequencer, message: Sighting) -> dict[str, Any]:
    """Have a sequencer see a message; return what became of it, and what counts then."""
    emitted = [*sequencer.see(message)]
    assert sequencer.outcome is not None  # noqa: S101 - it has just seen one
    replayed = {"replayed": [*sequencer.replayed]} if sequencer.replayed else {}
    return {"outcome": sequencer.outcome.value, "emitted": emitted, **replayed}


class Tracing:
    """A sequencer of messages that are written as JSON."""

    def __init__(self, ring: int) -> None:
        self._ring = ring
        self._seen: dict[str, dict[int, Sighting]] = {}
        self._producers: dict[str, bytes] = {}
        self._names: dict[bytes, str | None] = {_NOBODY: None}
        self._kept: Mapping[str, Checkpoint] = {}
        self._sequencer = Sequencer(self._reread, ring)

    def lines(self, given: Iterable[str]) -> Iterator[str]:
        """Yield a line for each that is given; raise a MessageError that names one that is bad."""
        for number, line in enumerate(given, 1):
            if not line.strip():
                continue
            try:
                yield json.dumps(self._answer(json.loads(line)))
            except ValueError as error:  # a MessageError and JSON's own are ones as well
                raise MessageError(f"line {number}: {error}") from None

    def _answer(self, asked: object) -> dict[str, Any]:
        if not isinstance(asked, dict):
            raise MessageError("it must be an object")
        if "checkpoint" in asked:
            return self._checkpoint(asked["checkpoint"])
        if "restore" in asked:
            self._sequencer = Sequencer(self._reread, self._ring, self._kept)
            return {"restored": True}
        return self._seeing(self._message(asked))

    def _checkpoint(self, options: object) -> dict[str, Any]:
        known = options if isinstance(options, dict) else {}
        horizon = _number(known, "horizon_ns", _LARGEST_OFFSET) if "horizon_ns" in known else 0
        self._kept = self._sequencer.checkpoint(horizon)
        rows = [
            {
                "journal": journal,
                "producer": self._names[producer],
                "last_ack": state.last_ack,
                "begin": state.begin,
            }
            for journal, kept in self._kept.items()
            for producer, state in kept.producers.items()
        ]
        return {"checkpoint": sorted(rows, key=lambda row: (row["journal"], row["producer"]))}

    def _seeing(self, message: Sighting) -> dict[str, Any]:
        self._seen.setdefault(message.log, {})[message.begin] = message
        answer = outcome_of(self._sequencer, message)
        emitted = [[self._names[each.producer], each.clock] for each in answer["emitted"]]
        return {**answer, "emitted": emitted}

    def _message(self, asked: Mapping[str, Any]) -> Sighting:
        journal, name = asked.get("journal"), asked.get("producer")
        if not isinstance(journal, str):
            raise MessageError("journal must be a text")
        begin, end = (_number(asked, field, _LARGEST_OFFSET) for field in ("begin", "end"))
        if end <= begin:
            raise MessageError("end must be larger than begin")
        if name is None:
            return Sighting(journal, _NOBODY, 0, Flags.OUTSIDE, begin, end)
        if not isinstance(name, str):
            raise MessageError("producer must be a text, or null for a nil UUID")
        clock = _number(asked, "clock", LARGEST)
        return Sighting(journal, self._producer(name), clock, _flags(asked), begin, end)

    def _producer(self, name: str) -> bytes:
        if name not in self._producers:
            number = len(self._producers).to_bytes(_PRODUCER_BYTES - 1)
            self._producers[name] = _RANDOM + number
            self._names[_RANDOM + number] = name
        return self._producers[name]

    def _reread(self, journal: str, begin: int, end: int) -> Iterator[Sighting]:
        seen = self._seen.get(journal, {})
        return (seen[offset] for offset in sorted(seen) if begin <= offset < end)


def _flags(asked: Mapping[str, Any]) -> int:
    flags = asked.get("flags")
    if isinstance(flags, str) and flags in Flags.__members__:
        return Flags[flags]
    if isinstance(flags, str):
        raise MessageError(f"flags must be one of {', '.join(Flags.__members__)}, or a number")
    return _number(asked, "flags", LARGEST_FLAGS)


def _number(asked: Mapping[str, Any], field: str, largest: int) -> int:
    value = asked.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise MessageError(f"{field} must be a whole number from 0 to {largest}")
    return value
