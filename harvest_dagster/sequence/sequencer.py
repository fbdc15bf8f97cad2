"""Reads messages as they stand in logs, and yields those that count, each once and in order.

Of each producer in each log it knows the largest clock that counted (`least`: what is not larger
is a double), the largest that it saw, and where what is pending begins: the open span. Messages
that it saw last are kept in a ring, so that a span which is settled is mostly still at hand; what
the ring has lost is read again from the log. A span that is open holds up nobody else's messages.

    see ──> is it a double? ──yes──> nothing
             │no
             ├─ counts at once ──────────────> committed() yields it; an open span is abandoned
             ├─ is pending ──────────────────> the span begins, or goes on
             └─ settles (an ACK or SETTLE) ──> committed() yields the span, and then itself

One thread; nothing here blocks but reading again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from harvest_dagster.sequence.outcomes import (
    ALONE,
    OF_SPANS,
    PENDING,
    SETTLING,
    UNCHANGING,
    Outcome,
)
from harvest_dagster.sequence.states import NONE_OPEN, Checkpoint, Producer, forgettable
from harvest_dagster.sequence.uuids import Flags


class Sighting(NamedTuple):
    """A message as it stands in a log, from where to where."""

    log: str
    producer: bytes
    clock: int
    flags: int
    begin: int
    end: int
    body: Any = None


Reread = Callable[[str, int, int], Iterable[Sighting]]
"""Read a log again, from an offset to before another."""


class _Partial:
    """A producer in a log: what counted, what was seen, and what is pending."""

    __slots__ = ("begin", "held", "largest", "least")

    def __init__(self, acked: int, begin: int = NONE_OPEN) -> None:
        self.least = self.largest = acked
        self.begin = begin
        self.held: deque[Sighting] = deque()  # of the open span, what the ring still has

    def settle(self, clock: int) -> None:
        """Take nothing for new up to a clock, and nothing for pending."""
        self.least = self.largest = clock
        self.begin = NONE_OPEN
        self.held.clear()

    def is_at_hand(self) -> bool:
        """Return whether the ring has the open span from its beginning."""
        return bool(self.held) and self.held[0].begin == self.begin


class _Log:
    """A log: how far it was read, and its producers."""

    __slots__ = ("changed", "offset", "producers")

    def __init__(self, known: Checkpoint) -> None:
        self.offset = known.offset
        self.changed = set[bytes]()  # producers of which a checkpoint would keep something else
        self.producers = {
            producer: _Partial(state.last_ack, state.begin)
            for producer, state in known.producers.items()
        }


class Sequencer:
    """Yields the messages of any number of logs that count, each once, in the order of its log."""

    def __init__(
        self, reread: Reread, ring: int = 8192, known: Mapping[str, Checkpoint] | None = None
    ) -> None:
        """Begin anew, or where a checkpoint ended."""
        self._reread = reread
        self._ring: list[tuple[_Partial, Sighting] | None] = [None] * max(1, ring)
        self._head = 0
        self._logs = {log: _Log(each) for log, each in (known or {}).items()}
        self._moved = set[str]()
        self._settles = False
        self.outcome: Outcome | None = None
        """What became of the last message."""
        self.replayed: tuple[int, int] | None = None
        """From where to where its log is read again for what the last message settles."""

    def see(self, message: Sighting) -> Iterable[Sighting]:
        """Return the messages that count now that this one is seen, to be read to their end."""
        if self._settles:
            raise RuntimeError("what the last message settled was not read to its end")
        self._evict()
        self.replayed = None
        log = self._logs.get(message.log) or self._new_log(message.log)
        self._moved.add(message.log)
        if message.clock == 0:
            self.outcome = Outcome.OUTSIDE_COMMIT
            return self._alone(log, message)
        partial = log.producers.get(message.producer)
        if partial is None:
            partial = log.producers[message.producer] = _Partial(message.clock - 1)
        self.outcome = outcome = _judged(partial, message)
        if outcome not in UNCHANGING:
            log.changed.add(message.producer)
        if outcome in OF_SPANS:
            return self._settled(log, partial, message)
        if outcome in ALONE:
            partial.settle(message.clock)
            return self._alone(log, message)
        log.offset = message.end
        if outcome is Outcome.ACK_ROLLBACK:
            partial.settle(message.clock)
        elif outcome in PENDING:
            self._hold(partial, message)
        return ()

    @property
    def has_moved(self) -> bool:
        """Whether `changes` would return any."""
        return bool(self._moved)

    @property
    def open_spans(self) -> int:
        """How many spans are open; it looks at all producers."""
        each = (partial for log in self._logs.values() for partial in log.producers.values())
        return sum(partial.begin != NONE_OPEN for partial in each)

    def pass_to(self, name: str, offset: int) -> None:
        """Have a log be read up to an offset, where nothing that counts stands before that."""
        log = self._logs.get(name) or self._new_log(name)
        if offset > log.offset:
            log.offset = offset
            self._moved.add(name)

    def checkpoint(self, horizon_ns: int = 0) -> dict[str, Checkpoint]:
        """Return what is to be kept of each log, without producers that the horizon forgets."""
        self.forget(horizon_ns)
        return {name: _kept(log, log.producers) for name, log in self._logs.items()}

    def changes(self) -> dict[str, Checkpoint]:
        """Return the logs that moved since the last call, with the producers that changed alone."""
        found = {name: _kept(log, log.changed) for name, log in self._moved_logs()}
        for _, log in self._moved_logs():
            log.changed.clear()
        self._moved.clear()
        return found

    def forget(self, horizon_ns: int) -> dict[str, list[bytes]]:
        """Forget producers by the horizon, and return which, by their logs; it looks at all."""
        found = {}
        for name, log in self._logs.items():
            gone = forgettable(_states(log, log.producers), horizon_ns) if horizon_ns else []
            for producer in gone:
                del log.producers[producer]
                log.changed.discard(producer)
            if gone:
                found[name] = gone
        return found

    def _moved_logs(self) -> list[tuple[str, _Log]]:
        return [(name, self._logs[name]) for name in sorted(self._moved)]

    def _new_log(self, name: str) -> _Log:
        log = self._logs[name] = _Log(Checkpoint())
        return log

    def _evict(self) -> None:
        slot = self._ring[self._head]
        if slot is not None:
            partial, message = slot
            if partial.held and partial.held[0] is message:
                partial.held.popleft()
            self._ring[self._head] = None

    def _advance(self, slot: tuple[_Partial, Sighting] | None) -> None:
        self._ring[self._head] = slot
        self._head = (self._head + 1) % len(self._ring)

    def _hold(self, partial: _Partial, message: Sighting) -> None:
        if partial.begin == NONE_OPEN:
            partial.begin = message.begin
        partial.largest = message.clock
        partial.held.append(message)
        self._advance((partial, message))

    def _alone(self, log: _Log, message: Sighting) -> tuple[Sighting]:
        self._advance(None)
        log.offset = message.end
        return (message,)

    def _settled(self, log: _Log, partial: _Partial, message: Sighting) -> Iterator[Sighting]:
        """Yield a span up to what settles it, and that; what is later stays pending, or is undone.

        A checkpoint on the way is of a span that begins with what was yielded last.
        """
        self._settles = True
        log.offset = message.begin
        at_hand = tuple(partial.held)
        self._advance(None)
        if not partial.is_at_hand():
            self.replayed = partial.begin, at_hand[0].begin if at_hand else message.begin
        return self._yielded(log, partial, message, at_hand)

    def _yielded(
        self, log: _Log, partial: _Partial, message: Sighting, at_hand: tuple[Sighting, ...]
    ) -> Iterator[Sighting]:
        again = self._reread(message.log, *self.replayed) if self.replayed else ()
        later = NONE_OPEN
        for each in chain(again, at_hand):
            if each.producer != message.producer or each.clock <= partial.least:
                continue
            if each.clock >= message.clock:
                later = each.begin if later == NONE_OPEN and each.clock > message.clock else later
                continue
            partial.begin = each.begin
            self._note(log, message)
            yield each
            partial.least = each.clock
        partial.begin = message.begin
        self._note(log, message)
        yield message
        _close(partial, message, later)
        log.offset = message.end
        self._note(log, message)
        self._settles = False

    def _note(self, log: _Log, message: Sighting) -> None:
        """Remember that a producer changed, also if changes were asked for amid its span."""
        self._moved.add(message.log)
        log.changed.add(message.producer)


def _close(partial: _Partial, message: Sighting, later: int) -> None:
    """End a span: what is later stays pending behind a SETTLE, and is undone by an ACK."""
    if message.flags == Flags.ACK or later == NONE_OPEN:
        partial.settle(message.clock)
        return
    partial.least, partial.begin = message.clock, later
    while partial.held and partial.held[0].begin < later:
        partial.held.popleft()


def _states(log: _Log, producers: Iterable[bytes]) -> dict[bytes, Producer]:
    known = log.producers
    return {each: Producer(known[each].least, known[each].begin) for each in producers}


def _kept(log: _Log, producers: Iterable[bytes]) -> Checkpoint:
    return Checkpoint(log.offset, _states(log, producers))


def _judged(partial: _Partial, message: Sighting) -> Outcome:
    is_new = message.clock > partial.least
    match message.flags:
        case Flags.CONTINUE:
            return _judged_pending(partial, message.clock)
        case Flags.ACK if not is_new:
            return Outcome.ACK_ROLLBACK
        case Flags.SETTLE if not is_new:
            return Outcome.SETTLE_ALREADY_ACKED
        case Flags.ACK | Flags.SETTLE:
            empty, ring, replay = SETTLING[Flags(message.flags)]
            if partial.begin == NONE_OPEN:
                return empty
            return ring if partial.is_at_hand() else replay
        case _:
            return Outcome.OUTSIDE_COMMIT if is_new else Outcome.OUTSIDE_ALREADY_ACKED


def _judged_pending(partial: _Partial, clock: int) -> Outcome:
    if clock <= partial.least:
        return Outcome.CONTINUE_ALREADY_ACKED
    if clock <= partial.largest:
        return Outcome.CONTINUE_TXN_CLOCK_LARGER
    if partial.begin == NONE_OPEN:
        return Outcome.CONTINUE_BEGIN_SPAN
    return Outcome.CONTINUE_EXTEND_SPAN
