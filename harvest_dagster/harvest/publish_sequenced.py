"""The middle stage, sequenced: each record with its identity, by an idempotent producer, unfenced.

It runs on a thread of its own, the only one that touches the producer; it purges too, as the stage
at least once does: a purge is begun and left to PostgreSQL, and it blocks on Kafka or PostgreSQL,
whichever it waits for.

    batches ──▶ lanes ──▶ producer ──▶ acknowledged ──▶ purge
                  ▲                        │
                  └── the first is there ──┘

By its clock a record is known as a double, so whoever has read its claim may send it, as often as
he likes: a leader that wakes up late does no harm. What must never be is a record behind one with a
larger clock (`partition_lanes` says how that could come about). So nothing is given up while others
go on: the client waits for as long as it takes, a record that is refused ends the session, and so
does Kafka's silence.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from queue import Empty
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message

from harvest_dagster.clock import now
from harvest_dagster.harvest.batch import Batch, Row, Sent, headers_of
from harvest_dagster.harvest.clients import Clients
from harvest_dagster.harvest.partition_lanes import Lane, PartitionLanes
from harvest_dagster.harvest.purge_records import RecordPurger
from harvest_dagster.harvest.rejections import REJECTIONS, TOPIC_FAULTS, refuse_wrong_clock
from harvest_dagster.harvest.sequenced_claims import SequencedBatch
from harvest_dagster.harvest.stage import RejectedError, RemarkError, Round
from harvest_dagster.sequence.uuids import HEADER, Flags, made

_IDLE_SECONDS = 0.05
_WAIT_SECONDS = 0.05
_BOTH_SECONDS = 0.001
"""How long to wait for Kafka while a purge is under way, whose end nothing else would tell."""
_FEW = 32
"""So many in flight are not worth a wait for more to go along with them."""
_SILENCE_SECONDS = 60.0
_GIVEN_UP = {KafkaError._GAPLESS_GUARANTEE, KafkaError._FATAL}  # noqa: SLF001 - librdkafka's own
"""The client was refused something, and gives up what was behind it; which, is known one by one."""
_Outgoing: TypeAlias = "tuple[Row, SequencedBatch, int]"


class SequencedPublisher:
    """Publishes for one round, which is one session of its producer; `run` is the thread."""

    def __init__(self, clients: Clients, purger: RecordPurger, *, careful: bool) -> None:
        self._producer, self._purger, self._careful = clients.producers[0], purger, careful
        self._few = _FEW if clients.hurries else 0
        self._lanes: PartitionLanes[_Outgoing] = PartitionLanes(now, one_by_one=careful)
        self._there: deque[Lane] = deque()
        self._acked: list[Sent] = []
        self._purging: list[Sent] = []
        self._heard_at = now()
        self._ending: RemarkError | None = None
        self._marker_ended = False
        self.published = 0

    def run(self, round_: Round) -> None:
        """Publish until the marker has no more, and all that is in flight has settled."""
        while not (round_.halted.is_set() or (self._marker_ended and self._is_settled())):
            if not self._marker_ended:
                self._take(round_)
            if self._lanes.flying:
                self._wait_for_kafka(_BOTH_SECONDS if self._purging else _WAIT_SECONDS)
            if self._there:
                self._release(round_)
            if self._ending is not None and not (self._careful and self._lanes.flying):
                raise self._ending
            if self._purging:
                self._end_purge(round_, 0 if self._lanes.flying else _WAIT_SECONDS)
            if self._acked and not self._purging:
                self._begin_purge(round_)
        round_.settled.put(None)

    @property
    def purged(self) -> int:
        """How many records were purged."""
        return self._purger.purged

    def _is_settled(self) -> bool:
        return not (self._lanes.flying or self._acked or self._purging)

    def _take(self, round_: Round) -> None:
        """Take all batches that are there; wait for one only if nothing is in flight."""
        try:
            batch = round_.batches.get(self._is_settled(), _IDLE_SECONDS)
            while batch is not None:
                round_.check()
                self._send_batch(batch)
                batch = round_.batches.get_nowait()
            self._marker_ended = True
        except Empty:
            return

    def _send_batch(self, batch: Batch) -> None:
        if not isinstance(batch, SequencedBatch):
            raise TypeError("a batch that was claimed for another delivery")
        for row, clock, partition in batch.places:
            lane = (row[1], partition)
            if self._lanes.enter(lane, (row, batch, clock)):
                self._send(lane, (row, batch, clock))

    def _wait_for_kafka(self, seconds: float) -> None:
        """Wait for acknowledgements; a few records go at once, many linger to fill a request."""
        try:
            if self._lanes.flying < self._few:
                self._producer.flush(seconds)
            else:
                self._producer.poll(seconds)
        except (KafkaException, SystemError) as failure:  # the latter along with deliveries
            raise self._given_up(failure) from failure
        if now() - self._heard_at > _SILENCE_SECONDS:
            raise RemarkError(f"Kafka was silent for {_SILENCE_SECONDS:.0f} s")

    def _release(self, round_: Round) -> None:
        """Send what has waited for those that are there.

        Not as soon as that is heard: it may be in the midst of a batch, whose records come behind.
        """
        round_.check()
        while self._there:
            lane = self._there.popleft()
            for outgoing in self._lanes.acknowledged(lane):
                self._send(lane, outgoing)

    def _send(self, lane: Lane, outgoing: _Outgoing) -> None:
        row, batch, clock = outgoing
        _, topic, key, value, names, contents, _, _ = row
        identity = made(batch.producer, clock, Flags.OUTSIDE)
        try:
            headers = headers_of(names, contents) if names else []
        except ValueError as fault:
            self._fail(lane, outgoing, KafkaError(KafkaError.INVALID_RECORD, str(fault)))
            return
        headers.append((HEADER, identity))
        on_delivery = partial(self._delivered, lane, outgoing)
        if self._lanes.flying == 1:
            self._heard_at = now()  # it could not be heard of while nothing was asked
        while not self._lanes.is_closed(lane):
            try:
                self._producer.produce(topic, value, key, lane[1], on_delivery, headers=headers)
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
            except KafkaException as refusal:
                self._fail(lane, outgoing, refusal.args[0])
                return
            else:
                return

    def _delivered(
        self, lane: Lane, outgoing: _Outgoing, error: KafkaError | None, _message: Message
    ) -> None:
        if error is not None:
            self._fail(lane, outgoing, error)
            return
        self._heard_at = now()
        self._acked.append(outgoing[:2])
        self._there.append(lane)

    def _fail(self, lane: Lane, outgoing: _Outgoing, error: KafkaError) -> None:
        """End the session; the first that failed says why, if others went down with it."""
        self._lanes.close(lane)
        refuse_wrong_clock([error])
        verdict = self._verdict(outgoing[0], error)
        if self._ending is None:
            self._ending = verdict
        elif isinstance(self._ending, RejectedError) and isinstance(verdict, RejectedError):
            self._ending.rejected += verdict.rejected

    def _verdict(self, row: Row, error: KafkaError) -> RemarkError:
        reason = f"record {row[0]} for {row[1]}: {error.str()}"
        if error.code() in TOPIC_FAULTS:
            return RemarkError(reason, held_topics={row[1]: error.str()})
        if self._careful and error.code() in REJECTIONS:
            return RejectedError([(row, error.str())])
        careful = not self._careful and error.code() in REJECTIONS | _GIVEN_UP
        return RemarkError(reason, careful=careful)

    def _given_up(self, failure: BaseException) -> RemarkError:
        """Return what follows from what the client raises, whichever record it was of."""
        cause = failure if isinstance(failure, KafkaException) else failure.__cause__
        is_fatal = isinstance(cause, KafkaException) and cause.args[0].code() in _GIVEN_UP
        careful = is_fatal and not self._careful
        return RemarkError(str(cause or failure), careful=careful)

    def _begin_purge(self, round_: Round) -> None:
        self._purging, self._acked = self._acked, []
        round_.check()
        self._purger.begin(self._purging)

    def _end_purge(self, round_: Round, seconds: float) -> None:
        finished = self._purger.end(seconds)
        if finished is None:
            return
        purged, self._purging = self._purging, []
        self.published += len(purged)
        size = sum(len(row[3] or b"") for row, _ in purged)
        round_.window.give_back(len(purged), size, finished)
