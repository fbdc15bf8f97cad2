"""The messages of one batch, gathered while they are applied.

It ends when nothing more has come, or at a limit; but always between two records of Kafka's, so
that a span is never divided, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import ReaderError
from harvest_dagster.reader.intake import Intake, OutsideError, PartitionEnd
from harvest_dagster.reader.positions import Partition
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.received import ReceivedMessage, log_of, received, sighted
from harvest_dagster.sequence.outcomes import DOUBLES
from harvest_dagster.sequence.sequencer import Sequencer

_WAIT_SECONDS = 0.2


@dataclass(slots=True)
class Counts:
    """What a batch came to."""

    read: int = 0
    applied: int = 0
    doubles: int = 0
    size: int = 0
    epochs: dict[Partition, int] = field(default_factory=dict)


class Gathering:
    """Yields the messages of a batch that count, once, in order."""

    def __init__(
        self,
        config: ReaderConfig,
        intake: Intake,
        sequencer: Sequencer,
        goes_on: Callable[[], bool],
    ) -> None:
        self._config, self._intake, self._sequencer = config, intake, sequencer
        self._goes_on = goes_on
        self._deadline = Deadline(config.batch_seconds)
        self.counts = Counts()
        self.failure: BaseException | None = None
        """What kept it from going on: it is no fault of whoever applies."""
        self.stop: ReaderError | OutsideError | None = None
        """What keeps the reader from going on behind this batch."""
        self.ended = False
        self.messages = self._guarded()

    def _guarded(self) -> Iterator[ReceivedMessage]:
        try:
            yield from self._gathered()
            self.ended = True
        except Exception as failure:
            self.failure = failure
            raise

    def _gathered(self) -> Iterator[ReceivedMessage]:
        counts, required = self.counts, self._config.uuid == "required"
        while self._is_open():
            try:
                record = self._intake.next(0 if counts.read else _WAIT_SECONDS)
                if record is None:
                    return
                if isinstance(record, PartitionEnd):
                    self._sequencer.pass_to(log_of(*record.place), record.offset)
                    continue
                seen = sighted(record, required=required)
            except (ReaderError, OutsideError) as stop:
                self.stop = stop
                return
            counts.read += 1
            if (epoch := record.leader_epoch()) is not None:
                counts.epochs[record.topic(), record.partition()] = epoch
            for each in self._sequencer.see(seen):
                counts.applied += 1
                counts.size += len(each.body.value() or b"")
                yield received(each)
            counts.doubles += self._sequencer.outcome in DOUBLES

    def _is_open(self) -> bool:
        counts, config = self.counts, self._config
        return (
            counts.applied < config.batch_messages
            and counts.size < config.batch_bytes
            and not self._deadline.over
            and self._goes_on()
        )
