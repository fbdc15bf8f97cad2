"""What can become of a message that a sequencer sees."""

from __future__ import annotations

from enum import Enum

from harvest_dagster.sequence.uuids import Flags


class Outcome(Enum):
    """What became of a message that was seen."""

    __hash__ = object.__hash__  # it is looked up for each message, and Enum's own takes its time

    OUTSIDE_ALREADY_ACKED = "OutsideAlreadyAcked"
    OUTSIDE_COMMIT = "OutsideCommit"
    CONTINUE_ALREADY_ACKED = "ContinueAlreadyAcked"
    CONTINUE_TXN_CLOCK_LARGER = "ContinueTxnClockLarger"
    CONTINUE_BEGIN_SPAN = "ContinueBeginSpan"
    CONTINUE_EXTEND_SPAN = "ContinueExtendSpan"
    ACK_ROLLBACK = "AckRollback"
    ACK_EMPTY = "AckEmpty"
    ACK_COMMIT_RING = "AckCommitRing"
    ACK_COMMIT_REPLAY = "AckCommitReplay"
    SETTLE_ALREADY_ACKED = "SettleAlreadyAcked"
    SETTLE_EMPTY = "SettleEmpty"
    SETTLE_COMMIT_RING = "SettleCommitRing"
    SETTLE_COMMIT_REPLAY = "SettleCommitReplay"


SETTLING = {
    Flags.ACK: (Outcome.ACK_EMPTY, Outcome.ACK_COMMIT_RING, Outcome.ACK_COMMIT_REPLAY),
    Flags.SETTLE: (Outcome.SETTLE_EMPTY, Outcome.SETTLE_COMMIT_RING, Outcome.SETTLE_COMMIT_REPLAY),
}
ALONE = {Outcome.OUTSIDE_COMMIT, Outcome.ACK_EMPTY, Outcome.SETTLE_EMPTY}
DOUBLES = {
    Outcome.OUTSIDE_ALREADY_ACKED,
    Outcome.CONTINUE_ALREADY_ACKED,
    Outcome.CONTINUE_TXN_CLOCK_LARGER,
    Outcome.SETTLE_ALREADY_ACKED,
}
UNCHANGING = DOUBLES | {Outcome.CONTINUE_EXTEND_SPAN}
PENDING = {Outcome.CONTINUE_BEGIN_SPAN, Outcome.CONTINUE_EXTEND_SPAN}
OF_SPANS = {
    Outcome.ACK_COMMIT_RING,
    Outcome.ACK_COMMIT_REPLAY,
    Outcome.SETTLE_COMMIT_RING,
    Outcome.SETTLE_COMMIT_REPLAY,
}
