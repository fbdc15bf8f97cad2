"""The middle stage, at least once: one record in flight for each key, any number of keys at once.

It runs on a thread of its own, the only one that touches the producer. A key's next record is
produced only when its last one was acknowledged *and* purged, so that whatever happens at most one
record of a key is sent twice: a reader may see 1,2,2,3, and never 1,2,3,2. So purging is part of
this stage. A purge is begun and then left to PostgreSQL, while this thread goes on with Kafka; it
blocks on the one of the two that it waits for.

    lane      the records of one topic and key; a busy lane's next ones wait, and hold nobody else
    sent      produced, not acknowledged yet
    acked     acknowledged; all there are get purged together when the last purge has ended
    purging   what the purge under way removes
    ending    a record was refused: nothing more is sent, what is in flight settles, then it ends
"""

from __future__ import annotations

from collections import deque
from functools import partial
from queue import Empty
from typing import TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message

from harvest_dagster.harvest.batch import Key, Row, Sent, headers_of
from harvest_dagster.harvest.clients import Clients
from harvest_dagster.harvest.purge_records import RecordPurger
from harvest_dagster.harvest.rejections import REJECTIONS, TOPIC_FAULTS, refuse_wrong_clock
from harvest_dagster.harvest.stage import RejectedError, RemarkError, Round

_IDLE_SECONDS = 0.05
_WAIT_SECONDS = 0.05
_BOTH_SECONDS = 0.001
"""How long to wait for Kafka while a purge is under way, whose end nothing else would tell."""
_FEW = 32
"""So many in flight are not worth a wait for more to go along with them."""

Lane: TypeAlias = "tuple[str, Key]"


class AtLeastOncePublisher:
    """Publishes for one round; `run` is the thread.

    `careful` tells that each record is sent by itself, so that an error is that record's own.
    """

    def __init__(self, clients: Clients, purger: RecordPurger, *, careful: bool) -> None:
        self._producer, self._purger, self._careful = clients.producers[0], purger, careful
        self._few = _FEW if clients.hurries else 0
        self._lanes: dict[Lane, deque[Sent]] = {}
        self._acked: list[Sent] = []
        self._purging: list[Sent] = []
        self._failed: list[tuple[Sent, KafkaError]] = []
        self._sent = 0
        self._ending: RemarkError | None = None
        self._marker_ended = False
        self.published = 0

    def run(self, round_: Round) -> None:
        """Publish until the marker has no more, and all that is in flight has settled."""
        while not round_.halted.is_set() and not (self._is_last() and self._is_settled()):
            if not self._is_last():
                self._take(round_)
            if self._sent:
                self._wait_for_kafka(_BOTH_SECONDS if self._purging else _WAIT_SECONDS)
            if self._failed:
                self._handle_failures(round_)
            if self._purging:
                self._end_purge(round_, 0 if self._sent else _WAIT_SECONDS)
            if self._acked and not self._purging:
                self._begin_purge(round_)
        if self._ending is not None:
            raise self._ending
        round_.settled.put(None)

    @property
    def purged(self) -> int:
        """How many records were purged."""
        return self._purger.purged

    def _is_last(self) -> bool:
        return self._marker_ended or self._ending is not None

    def _is_settled(self) -> bool:
        return not (self._sent or self._acked or self._purging or self._failed)

    def _wait_for_kafka(self, seconds: float) -> None:
        """Wait for acknowledgements; a few records go at once, many linger to fill a request."""
        if self._sent < self._few:
            self._producer.flush(seconds)
        else:
            self._producer.poll(seconds)

    def _take(self, round_: Round) -> None:
        """Take all batches that are there; wait for one only if nothing is in flight."""
        try:
            batch = round_.batches.get(self._is_settled(), _IDLE_SECONDS)
            while batch is not None:
                for row in batch.rows:
                    self._send_in_turn((row, batch), round_)
                batch = round_.batches.get_nowait()
            self._marker_ended = True
        except Empty:
            return

    def _send_in_turn(self, sent: Sent, round_: Round) -> None:
        row = sent[0]
        if row[2] is not None:
            lane = (row[1], row[2])
            waiting = self._lanes.get(lane)
            if waiting is not None:
                waiting.append(sent)
                return
            self._lanes[lane] = deque()
        self._send(sent, round_)

    def _send(self, sent: Sent, round_: Round) -> None:
        """Send a record, unless the lease is over: a process may have slept just before.

        Nothing but this look holds off a leader that wakes: Kafka fences nobody here.
        """
        round_.check()
        _, topic, key, value, names, contents, partition, _ = sent[0]
        try:
            headers = headers_of(names, contents) if names else None
        except ValueError as fault:
            self._failed.append((sent, KafkaError(KafkaError.INVALID_RECORD, str(fault))))
            return
        place = -1 if partition is None else partition
        on_delivery = partial(self._delivered, sent)
        while True:
            try:
                self._producer.produce(topic, value, key, place, on_delivery, headers=headers)
                break
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
            except KafkaException as refusal:
                if refusal.args[0].code() not in REJECTIONS:
                    raise
                self._failed.append((sent, refusal.args[0]))
                return
        self._sent += 1

    def _delivered(self, sent: Sent, error: KafkaError | None, _message: Message) -> None:
        self._sent -= 1
        if error is None:
            self._acked.append(sent)
        else:
            self._failed.append((sent, error))

    def _begin_purge(self, round_: Round) -> None:
        self._purging, self._acked = self._acked, []
        round_.check()
        self._purger.begin(self._purging)

    def _end_purge(self, round_: Round, seconds: float) -> None:
        """If the purge has ended, let the next of each lane go."""
        finished = self._purger.end(seconds)
        if finished is None:
            return
        purged, self._purging = self._purging, []
        self.published += len(purged)
        size = sum(len(row[3] or b"") for row, _ in purged)
        round_.window.give_back(len(purged), size, finished)
        for row, _ in purged:
            if row[2] is not None:
                self._free((row[1], row[2]), round_)

    def _free(self, lane: Lane, round_: Round) -> None:
        waiting = self._lanes[lane]
        if not waiting:
            del self._lanes[lane]
        elif self._ending is None:
            self._send(waiting.popleft(), round_)

    def _handle_failures(self, round_: Round) -> None:
        failed, self._failed = self._failed, []
        refuse_wrong_clock(error for _, error in failed)
        for sent, error in failed:
            verdict = self._verdict(sent[0], error)
            if isinstance(self._ending, RejectedError) and isinstance(verdict, RejectedError):
                self._ending.rejected += verdict.rejected
            elif self._ending is None:
                self._ending = verdict
            if self._ending is None:
                self._send(sent, round_)  # the same record again: its lane has waited for it

    def _verdict(self, row: Row, error: KafkaError) -> RemarkError | None:
        reason = f"record {row[0]} for {row[1]}: {error.str()}"
        if error.code() in TOPIC_FAULTS:
            return RemarkError(reason, held_topics={row[1]: error.str()})
        if error.code() in REJECTIONS:
            if self._careful:
                return RejectedError([(row, error.str())])
            return RemarkError(reason, careful=True)
        # What Kafka did not answer in time goes again at once; any other error would come back as
        # fast as it was sent, so the next round, and its pause, is for that.
        late = error.code() == KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - librdkafka's own
        return None if late and not error.fatal() else RemarkError(reason)
