"""The sequencer beside a model that is slow and obvious: it keeps all that is pending."""

from __future__ import annotations

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.uuids import Flags
from tests.support.sequences import Log

LOGS = ("one", "two")


class Model:
    """One producer in one log."""

    def __init__(self, clock: int) -> None:
        self.acked = clock - 1
        self.pending: list[Sighting] = []

    def sees(self, message: Sighting) -> list[Sighting]:
        """Return what counts."""
        is_new = message.clock > self.acked
        if message.flags == Flags.CONTINUE:
            self.pending += [message] * is_new
            return []
        if message.flags == Flags.ACK and not is_new:
            self.acked, self.pending = message.clock, []
        if not is_new:
            return []
        counted = []
        if message.flags in {Flags.ACK, Flags.SETTLE}:
            for each in self.pending:
                if self.acked < each.clock < message.clock:
                    counted.append(each)
                    self.acked = each.clock
        later = [each for each in self.pending if each.clock > message.clock]
        self.pending = later if message.flags == Flags.SETTLE else []
        self.acked = message.clock
        return [*counted, message]


def counted_by(models: dict[tuple[str, bytes], Model], message: Sighting) -> list[Sighting]:
    """Return what counts by the model; without identity, all does."""
    if message.clock == 0:
        return [message]
    model = models.setdefault((message.log, message.producer), Model(message.clock))
    return model.sees(message)


WRITTEN = st.tuples(
    st.sampled_from(LOGS),
    st.sampled_from([b"A", b"B"]),
    st.integers(0, 9),
    st.sampled_from([*Flags, Flags.CONTINUE, Flags.CONTINUE, 0x100]),
)
STEPS = st.lists(st.one_of(WRITTEN, st.just("restart"), st.integers(0, 3)), max_size=60)


@settings(max_examples=1500, deadline=None)
@given(STEPS, st.integers(1, 6))
def test_what_counts(steps: list[tuple[str, bytes, int, int] | str | int], ring: int) -> None:
    """The same, whatever is written, whatever the ring has lost, wherever it stopped and went on.

    A number is a stop amid the next span: so many messages of it were done by then.
    """
    log, models = Log(), dict[tuple[str, bytes], Model]()
    sequencer = Sequencer(log.reread, ring)
    stops: int | None = None
    for step in steps:
        if isinstance(step, int):
            stops = step
        elif isinstance(step, str):
            sequencer = Sequencer(log.reread, ring, sequencer.checkpoint())
        else:
            message = log.append(*step)
            expected = counted_by(models, message)
            counted: list[Sighting] = []
            if stops is not None and len(expected) > stops + 1:
                done = [*islice(sequencer.see(message), stops + 1)][:stops]
                kept = sequencer.checkpoint()
                assert log.since(message.log, kept[message.log].offset) == [message]
                sequencer, counted, stops = Sequencer(log.reread, ring, kept), done, None
            counted += sequencer.see(message)
            assert counted == expected
