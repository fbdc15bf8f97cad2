"""Which messages count, each once and in order: gazette's own cases, and ours."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.states import Checkpoint, Producer
from harvest_dagster.sequence.uuids import Flags
from tests.support.sequences import Log, sighting

LETTERS = {"C": Flags.CONTINUE, "K": Flags.ACK, "O": Flags.OUTSIDE, "S": Flags.SETTLE}


class Tried:
    """A sequencer of one log, to which messages are written as `A1C`: producer, clock, flags."""

    def __init__(self, ring: int = 3) -> None:
        self.log = Log()
        self.sequencer = Sequencer(self.log.reread, ring)

    def sees(self, *written: str) -> list[str]:
        """Return the outcomes, and behind each what counts then."""
        return [self._sees(one) for one in written]

    def _sees(self, one: str) -> str:
        message = self.log.append("log", one[0].encode(), int(one[1:-1]), LETTERS[one[-1]])
        counted = shown(self.sequencer.see(message))
        assert self.sequencer.outcome is not None
        return f"{self.sequencer.outcome.value} {counted}".strip()


def shown(messages: Iterable[Sighting]) -> str:
    """Return who sent messages, and their clocks."""
    return " ".join(f"{message.producer.decode()}{message.clock}" for message in messages)


def test_gazettes_cases() -> None:
    """Doubles in a span, an ACK of nothing, a rollback, and a span that the ring has lost."""
    tried = Tried()
    begun = ["ContinueBeginSpan", "ContinueExtendSpan", *["ContinueTxnClockLarger"] * 2]
    assert tried.sees("A1C", "A2C", "A1C", "A2C") == begun
    assert tried.sees("A3K") == ["AckCommitRing A1 A2 A3"]
    assert tried.sees("A4K") == ["AckEmpty A4"]
    assert tried.sees("A5C", "A7C") == ["ContinueBeginSpan", "ContinueExtendSpan"]
    assert tried.sees("A6K") == ["AckCommitRing A5 A6"]
    assert tried.sees("A7C", "B1C") == ["ContinueBeginSpan"] * 2
    of_b = tried.log.messages[-1].begin
    assert tried.sees("A7C") == ["ContinueTxnClockLarger"]
    assert tried.sees("A8C", "B2C") == ["ContinueExtendSpan"] * 2
    again = tried.log.messages[-1].begin
    assert tried.sees("A6K") == ["AckRollback"]
    assert tried.sees("B3K") == ["AckCommitReplay B1 B2 B3"]
    assert tried.sequencer.replayed == (of_b, again)


def test_messages_that_count_at_once() -> None:
    """Each once; a span that is open is abandoned."""
    tried = Tried()
    assert tried.sees("A1O", "A2O") == ["OutsideCommit A1", "OutsideCommit A2"]
    assert tried.sees("A1O", "A2O") == ["OutsideAlreadyAcked"] * 2
    assert tried.sees("A3C", "A4C", "A5O")[-1] == "OutsideCommit A5"
    assert tried.sees("A4C", "A5K") == ["ContinueAlreadyAcked", "AckRollback"]


def test_flags_that_nobody_knows() -> None:
    """They count at once."""
    log = Log()
    sequencer = Sequencer(log.reread)
    unknown = [log.append("log", b"A", 7, 0x100) for _ in range(2)]
    assert [[*sequencer.see(message)] for message in unknown] == [unknown[:1], []]


def test_messages_without_identity() -> None:
    """They count always, and nothing is remembered of them."""
    log = Log()
    sequencer = Sequencer(log.reread)
    for _ in range(2):
        message = log.append("log", bytes(6), 0, Flags.OUTSIDE)
        assert [*sequencer.see(message)] == [message]
    assert sequencer.checkpoint() == {"log": Checkpoint(2, {})}


def test_a_message_that_settles() -> None:
    """It counts with what is pending; what is pending already as itself counts once."""
    tried = Tried(8)
    assert tried.sees("A1C", "A2C", "A3S")[-1] == "SettleCommitRing A1 A2 A3"
    assert tried.sees("A3S", "A4S") == ["SettleAlreadyAcked", "SettleEmpty A4"]
    assert tried.sees("A5C", "A6C", "A6S")[-1] == "SettleCommitRing A5 A6"


def test_a_late_message_that_settles_undoes_nothing() -> None:
    """Where an ACK that comes late rolls back what its successor sent, a SETTLE does not."""
    tried = Tried(8)
    tried.sees("A1C", "A2S", "A3C", "A4C")
    assert tried.sees("A2S", "A5S") == ["SettleAlreadyAcked", "SettleCommitRing A3 A4 A5"]
    tried.sees("A6C", "A7C", "A8C")
    assert tried.sees("A7S", "A9S") == ["SettleCommitRing A6 A7", "SettleCommitRing A8 A9"]
    tried.sees("B1C", "B2K", "B3C")
    assert tried.sees("B2K", "B4K") == ["AckRollback", "AckEmpty B4"]


def test_what_is_settled_must_be_read_to_its_end() -> None:
    """Or messages would be passed over without a word."""
    tried = Tried()
    tried.sees("A1C")
    ack = tried.log.append("log", b"A", 2, Flags.ACK)
    next(iter(tried.sequencer.see(ack)))
    with pytest.raises(RuntimeError, match="not read to its end"):
        tried.sequencer.see(ack)


def test_a_checkpoint_amid_a_span() -> None:
    """What was yielded last is yielded again, and nothing before it."""
    tried = Tried()
    tried.sees("A1C", "A2C")
    ack = tried.log.append("log", b"A", 3, Flags.ACK)
    span = iter(tried.sequencer.see(ack))
    assert shown([next(span), next(span)]) == "A1 A2"
    kept = tried.sequencer.checkpoint()
    assert kept == {"log": Checkpoint(2, {b"A": Producer(1, 1)})}
    assert shown(Sequencer(tried.log.reread, 3, kept).see(ack)) == "A2 A3"


def test_producers_are_forgotten() -> None:
    """By the clock, not by the number; who is stable, or has a span open, is not."""
    log, horizon_ns, late = Log(), 1000, 10_000
    sequencer = Sequencer(log.reread)
    old, stable, opened = b"\x01old..", b"\x03stays", b"\x01open."
    sequencer.see(log.append("log", old, 100, Flags.OUTSIDE))
    sequencer.see(log.append("log", stable, 100, Flags.OUTSIDE))
    sequencer.see(log.append("log", opened, 100, Flags.CONTINUE))
    sequencer.see(log.append("other", old, 100, Flags.OUTSIDE))
    edge = b"\x01edge."
    sequencer.see(log.append("log", edge, late - 160, Flags.OUTSIDE))
    sequencer.see(log.append("log", b"\x01new..", late, Flags.OUTSIDE))
    assert sequencer.checkpoint(0)["log"].producers.keys() >= {old, stable, opened}
    kept = sequencer.checkpoint(horizon_ns)
    assert set(kept["log"].producers) == {stable, opened, edge, b"\x01new.."}
    assert set(kept["other"].producers) == {old}
    assert [*sequencer.see(sighting("log", old, 100, Flags.OUTSIDE, 5))]


def test_what_has_changed() -> None:
    """Logs that moved since the last call, each with the producers that changed, and no others."""
    tried = Tried(8)
    tried.sees("A1O", "B1O")
    kept = {b"A": Producer(1), b"B": Producer(1)}
    assert tried.sequencer.changes() == {"log": Checkpoint(2, kept)}
    assert tried.sequencer.changes() == {}
    tried.sees("A1O", "B2C")
    assert tried.sequencer.changes() == {"log": Checkpoint(4, {b"B": Producer(1, 3)})}
    tried.sees("B3C", "B2C")
    assert tried.sequencer.changes() == {"log": Checkpoint(6, {})}
    tried.sees("B4K", "A1K")
    kept = {b"B": Producer(4), b"A": Producer(1)}
    assert tried.sequencer.changes() == {"log": Checkpoint(8, kept)}
    tried.sequencer.pass_to("log", 7)
    assert tried.sequencer.changes() == {}
    tried.sequencer.pass_to("log", 9)
    assert tried.sequencer.changes() == {"log": Checkpoint(9, {})}


def test_changes_add_up_to_the_checkpoint() -> None:
    """Also where they were asked for amid a span."""
    tried = Tried(8)
    tried.sees("A1C", "A2C", "B1O")
    summed = dict(tried.sequencer.changes()["log"].producers)
    ack = tried.log.append("log", b"A", 3, Flags.ACK)
    for _ in tried.sequencer.see(ack):
        summed |= tried.sequencer.changes()["log"].producers
    summed |= tried.sequencer.changes()["log"].producers
    assert summed == tried.sequencer.checkpoint()["log"].producers


def test_what_is_forgotten_is_told() -> None:
    """By its log, so that it can be forgotten where it is kept as well."""
    log = Log()
    sequencer = Sequencer(log.reread)
    sequencer.see(log.append("log", b"\x01old..", 100, Flags.OUTSIDE))
    sequencer.see(log.append("log", b"\x01new..", 10_000, Flags.OUTSIDE))
    assert sequencer.forget(1000) == {"log": [b"\x01old.."]}
    assert sequencer.forget(1000) == {}
    assert set(sequencer.changes()["log"].producers) == {b"\x01new.."}


@pytest.mark.parametrize("ring", [-1, 0, 1])
def test_the_smallest_ring(ring: int) -> None:
    """It has a place, and what it loses is read again."""
    tried = Tried(ring)
    tried.sees("A1C", "A2C", "B1C")
    assert tried.sees("A3K") == ["AckCommitReplay A1 A2 A3"]
