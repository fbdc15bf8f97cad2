"""The trace form: gazette's vectors and ours, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harvest_dagster.errors import MessageError
from harvest_dagster.sequence.tracing import Tracing

LETTERS = {"C": "CONTINUE", "K": "ACK", "O": "OUTSIDE", "S": "SETTLE"}


class Traced:
    """A trace to which messages are written as `A1C`: producer, clock, flags."""

    def __init__(self, ring: int = 3) -> None:
        self.tracing, self.offset = Tracing(ring), 0

    def __call__(self, *written: str) -> list[str]:
        """Return the outcomes, and behind each what counts then, and what was read again."""
        return [self._shown(self.ask(**self._message(one))) for one in written]

    def ask(self, **line: Any) -> Any:
        """Give a line, and return the answer."""
        (answer,) = self.tracing.lines([json.dumps(line)])
        return json.loads(answer)

    def _message(self, one: str) -> dict[str, Any]:
        begin, self.offset = self.offset, self.offset + 10
        flags: Any = LETTERS[one[-1]]
        return {
            "journal": "j",
            "producer": one[0],
            "clock": int(one[1:-1]),
            "flags": flags,
            "begin": begin,
            "end": self.offset,
        }

    def _shown(self, answer: dict[str, Any]) -> str:
        counted = "".join(f" {producer}{clock}" for producer, clock in answer["emitted"])
        again = answer.get("replayed")
        return f"{answer['outcome']}{counted}{f' {again}' if again else ''}"


def test_vectors() -> None:
    """One sequencer with a ring of 3 goes through the spans of the specification."""
    trace = Traced()
    begun = ["ContinueBeginSpan", "ContinueExtendSpan"]
    assert trace("A1C", "A2C", "A1C", "A2C", "A3K") == [
        *begun,
        *["ContinueTxnClockLarger"] * 2,
        "AckCommitRing A1 A2 A3",
    ]
    assert trace("A4K") == ["AckEmpty A4"]
    assert trace("A5C", "A7C", "A6K") == [*begun, "AckCommitRing A5 A6"]
    assert trace("A7C") == ["ContinueBeginSpan"]
    of_b1 = trace.offset
    assert trace("B1C", "A7C", "A8C") == [
        "ContinueBeginSpan",
        "ContinueTxnClockLarger",
        "ContinueExtendSpan",
    ]
    of_b2 = trace.offset
    assert trace("B2C", "A6K") == ["ContinueExtendSpan", "AckRollback"]
    assert trace("B3K") == [f"AckCommitReplay B1 B2 B3 [{of_b1}, {of_b2}]"]


def test_vectors_of_messages_outside() -> None:
    """Each counts once, and abandons an open span."""
    trace = Traced()
    assert trace("A1O", "A2O", "A1O", "A2O") == [
        "OutsideCommit A1",
        "OutsideCommit A2",
        *["OutsideAlreadyAcked"] * 2,
    ]
    assert trace("A3C", "A4C", "A5O")[-1] == "OutsideCommit A5"


def test_vectors_of_flags_and_of_no_uuid() -> None:
    """Unknown flags act as OUTSIDE; a nil UUID counts always, and is not remembered."""
    trace = Traced()
    unknown = {"journal": "j", "producer": "A", "clock": 7, "flags": 0x100, "begin": 0, "end": 1}
    assert trace.ask(**unknown) == {"outcome": "OutsideCommit", "emitted": [["A", 7]]}
    assert trace.ask(**unknown) == {"outcome": "OutsideAlreadyAcked", "emitted": []}
    nil = {"journal": "k", "producer": None, "clock": 0, "flags": "OUTSIDE", "begin": 0, "end": 1}
    for _ in range(2):
        assert trace.ask(**nil) == {"outcome": "OutsideCommit", "emitted": [[None, 0]]}
    kept = [{"journal": "j", "producer": "A", "last_ack": 7, "begin": -1}]
    assert trace.ask(checkpoint={}) == {"checkpoint": kept}


def test_our_own_flag() -> None:
    """SETTLE commits itself and what is pending, and is void where it comes late."""
    trace = Traced(8)
    assert trace("A1C", "A2S", "A3C", "A2S", "A4S")[-2:] == [
        "SettleAlreadyAcked",
        "SettleCommitRing A3 A4",
    ]


def test_checkpoint_and_restore() -> None:
    """It goes on from the last checkpoint, and reads again what its ring has lost."""
    trace = Traced()
    trace("B5O", "A1O", "A2C")
    kept = [
        {"journal": "j", "producer": "A", "last_ack": 1, "begin": 20},
        {"journal": "j", "producer": "B", "last_ack": 5, "begin": -1},
    ]
    assert trace.ask(checkpoint={"horizon_ns": 0}) == {"checkpoint": kept}
    trace("C1O")
    assert trace.ask(restore=True) == {"restored": True}
    assert trace("A3K") == ["AckCommitReplay A2 A3 [20, 40]"]


def test_the_horizon() -> None:
    """Producers are forgotten by the clock; what is left is sorted."""
    trace = Traced()
    trace("A1O", "B1C", "C1000O")
    kept = trace.ask(checkpoint={"horizon_ns": 1000})["checkpoint"]
    assert [row["producer"] for row in kept] == ["B", "C"]


GOOD = {"journal": "j", "producer": "A", "clock": 1, "flags": "OUTSIDE", "begin": 0, "end": 1}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2: Expecting property name"),
        ("[]", "line 2: it must be an object"),
        (json.dumps({**GOOD, "journal": 1}), "line 2: journal must be a text"),
        (json.dumps({**GOOD, "producer": 1}), "line 2: producer must be a text, or null"),
        (json.dumps({**GOOD, "flags": "MAYBE"}), "line 2: flags must be one of OUTSIDE"),
        (json.dumps({**GOOD, "flags": 1024}), "line 2: flags must be a whole number"),
        (json.dumps({**GOOD, "clock": -1}), "line 2: clock must be a whole number"),
        (json.dumps({**GOOD, "clock": True}), "line 2: clock must be a whole number"),
        (json.dumps({**GOOD, "end": 0}), "line 2: end must be larger than begin"),
        (json.dumps({"checkpoint": {"horizon_ns": "1"}}), "line 2: horizon_ns must be a whole"),
    ],
)
def test_a_bad_line(line: str, why: str) -> None:
    """It is named by its number, behind the answers of those before it."""
    answers = Tracing(3).lines([json.dumps(GOOD), line])
    assert json.loads(next(answers))["outcome"] == "OutsideCommit"
    with pytest.raises(MessageError, match=why):
        next(answers)
