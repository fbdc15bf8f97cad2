"""What the stages of a tour share: how they hand on batches, and how they are told to end.

    marker ──▶ batches ──▶ publisher ──▶ settled ──▶ purger
       ▲                                               │
       └───────────── window (back-pressure) ◀─────────┘

Each stage is a thread of its own, and has its own connection; nothing is shared but the two queues,
the window, and this. The queues themselves never block a writer: what may be in them is bounded by
the window, which is where the marker waits.

A round of the stages ends in one of three ways:

    drain   the marker marks no more, and what is marked goes all the way; then None follows it
    halt    every stage stops before its next write
    failed  a stage raised: the others are halted, and the tour decides what comes next
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from harvest_dagster.errors import FencedError
from harvest_dagster.harvest.batch import Batch, Row, Window


class RemarkError(Exception):
    """The batches in flight are to be given up, and marked again; the reason is for people.

    `careful` asks that the next round sends each record by itself; `held_topics` are set aside.
    """

    rejected: Sequence[tuple[Row, str]] = ()
    """Records that Kafka will never take, each with the reason."""

    def __init__(
        self, reason: str, *, careful: bool = False, held_topics: dict[str, str] | None = None
    ) -> None:
        super().__init__(reason)
        self.careful = careful
        self.held_topics = held_topics or {}

    @property
    def is_progress(self) -> bool:
        """Whether the next round finds or parks what was refused: no other key need wait."""
        return self.careful or bool(self.rejected)


class RejectedError(RemarkError):
    """Kafka will never take these records: they are to be parked, and all else marked again."""

    def __init__(self, rejected: list[tuple[Row, str]]) -> None:
        super().__init__(f"{len(rejected)} rejected: {rejected[0][1]}")
        self.rejected: list[tuple[Row, str]] = rejected


class Round:
    """One run of the stages, from a recovery to the next."""

    def __init__(self, window: Window, trusted: Callable[[], bool]) -> None:
        self.window = window
        self.batches: SimpleQueue[Batch | None] = SimpleQueue()
        self.settled: SimpleQueue[Batch | None] = SimpleQueue()
        self.draining = threading.Event()
        self.halted = threading.Event()
        self.failure: BaseException | None = None
        self._trusted = trusted
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise unless the lease can be trusted still: to be called before every write."""
        if not self._trusted():
            raise FencedError("the lease could not be confirmed in time, so it counts as lost")

    def drain(self) -> None:
        """Let what is marked go all the way, and mark no more."""
        self.draining.set()

    def halt(self) -> None:
        """Stop every stage before its next write."""
        self.halted.set()
        self.draining.set()
        self.batches.put(None)
        self.settled.put(None)

    def fail(self, failure: BaseException) -> None:
        """End the round for a reason; the first one counts."""
        with self._lock:
            if self.failure is None:
                self.failure = failure
        self.halt()

    def start(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run a stage on a thread of its own."""

        def guarded() -> None:
            try:
                run()
            except SystemError as failure:
                # What confluent-kafka makes of a fatal error that comes along with deliveries.
                self.fail(RemarkError(str(failure.__cause__ or failure)))
            except BaseException as failure:  # noqa: BLE001 - handed to the tour, which raises it
                self.fail(failure)

        thread = threading.Thread(target=guarded, name=f"harvest-{name}", daemon=True)
        thread.start()
        return thread
