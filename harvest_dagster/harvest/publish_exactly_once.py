"""The middle stage, exactly once: a Kafka transaction for the batches that are there.

It runs on a thread of its own, the only one that touches the producer, and blocks on Kafka alone.
While one batch commits here, the marker marks the next and the purger removes the last.

A small transaction takes along what has been marked by the time that Kafka has its first records.

Producers take turns, each with a transaction whole: Kafka sends a producer away that begins again
before its last transaction has settled, which it does after it said that it was committed. Order
stays, since a transaction begins when the one before it has been committed, and not sooner.

A commit that fails ends the round, and so does one that may not have been confirmed by its first
request (`late_end` says why): what follows is published by producers of a new epoch.

The batch's number is committed in the same transaction as its messages, as the offset of the group
`<name>.harvest` on the leader topic: the durable word, inside Kafka, on what was published. A
leader that takes over purges the claims up to that number, and marks the others again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, cycle
from queue import Empty

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from harvest_dagster.harvest.batch import Batch, Row, headers_of
from harvest_dagster.harvest.clients import Clients
from harvest_dagster.harvest.rejections import REJECTIONS, TOPIC_FAULTS, refuse_wrong_clock
from harvest_dagster.harvest.stage import RejectedError, RemarkError, Round
from harvest_dagster.harvest.topic_book import forbidden

_KEEP_ALIVE_SECONDS = 3600.0
"""A group's offsets expire when nobody commits them for days, so an idle leader repeats them."""
_TIMEOUT_SECONDS = 30.0
_LONG_SECONDS = 2.0
_POLL_SECONDS = 0.1
_FEW = 500
_JOIN_SECONDS = 0.01
"""Up to so many records wait so long for Kafka to have them, and for others to join them."""
_UNNAMED_FAULTS = TOPIC_FAULTS | {KafkaError._STATE}  # noqa: SLF001 - librdkafka's own
"""What may come of a topic that Kafka would not have in a transaction: it does not say which, and
what follows in that transaction is told that it has failed, and not why."""


class ExactlyOncePublisher:
    """Publishes for one round; `run` is the thread.

    `careful` says that each record is sent by itself, so that an error is that record's own.
    """

    def __init__(
        self, clients: Clients, place: TopicPartition, committed: int, *, careful: bool
    ) -> None:
        self._producers, self._producer = cycle(clients.producers), clients.producers[0]
        self._place, self._faults, self._admin = place, clients.faults, clients.admin
        self._ear = clients.ear
        self._group = clients.group.consumer_group_metadata()
        self._committed, self._careful = committed, careful
        self._rejected: list[tuple[Row, str]] = []
        self._ended = False
        self.published = 0

    def run(self, round_: Round) -> None:
        """Publish until the marker has no more."""
        while not self._ended:
            batches = self._take(round_, _KEEP_ALIVE_SECONDS)
            if round_.halted.is_set():
                return
            if batches or not self._ended:
                round_.check()
                self._publish(batches, round_)
            for batch in batches:
                self.published += len(batch.rows)
                round_.settled.put(batch)
            self._refuse_another()
        round_.settled.put(None)

    def _refuse_another(self) -> None:
        """End the round if a request to end a transaction may come to Kafka late.

        All that was committed is published. The next round learns that from Kafka, and purges it.
        """
        if self._ear.heard and not self._ended:
            raise RemarkError(f"an end of a transaction may come late: {self._ear.heard[0]}")

    def _take(self, round_: Round, seconds: float) -> list[Batch]:
        """Take all batches that wait, or none when nothing came for so long."""
        batches: list[Batch] = []
        with suppress(Empty):
            found = round_.batches.get(timeout=seconds)
            while found is not None:
                batches.append(found)
                found = round_.batches.get_nowait()
            self._ended = True
        return batches

    def _publish(self, batches: list[Batch], round_: Round) -> None:
        """Publish batches, and those that join them, in one transaction, or raise what must happen.

        The first records take longest, since Kafka has to be told of each partition of theirs. If
        they are few, what is marked meanwhile goes along, and need not wait for the next turn.
        """
        self._producer = next(self._producers)
        try:
            self._producer.begin_transaction()
            self._produce(batches)
            if self._may_be_joined(batches):
                self._producer.flush(_JOIN_SECONDS)
                round_.check()
                joining = self._take(round_, 0)
                batches += joining
                self._produce(joining)
            self._finish(batches)
        except KafkaException as failure:
            rows = [row for batch in batches for row in batch.rows]
            what = f"batch {batches[-1].number if batches else self._committed}"
            raise self._verdict(what, failure.args[0], rows) from failure

    def _may_be_joined(self, batches: list[Batch]) -> bool:
        return 0 < sum(len(batch.rows) for batch in batches) <= _FEW and not self._careful

    def _finish(self, batches: list[Batch]) -> None:
        """Commit, and with it the number of the last batch."""
        number = batches[-1].number if batches else self._committed
        place = TopicPartition(
            self._place.topic, self._place.partition, number, self._place.metadata
        )
        self._producer.send_offsets_to_transaction([place], self._group, _TIMEOUT_SECONDS)
        self._commit({row[1] for batch in batches for row in batch.rows})
        self._committed = number

    def _commit(self, topics: Iterable[str]) -> None:
        """Commit, and hear whether a connection was lost meanwhile.

        Kafka is asked for the commit once all records are there. If they take long, look whether
        the topics still exist: the client asks for a deleted one again and again, as long as it
        may, and all others would wait. A commit that fails is not asked for again, since a request
        for it may be on its way: the next round finds out what became of it.
        """
        if self._producer.flush(_LONG_SECONDS):
            gone = self._gone(topics)
            if gone:
                reason = "; ".join(f"{topic}: {fault}" for topic, fault in gone.items())
                raise RemarkError(reason, held_topics=gone)
        self._producer.commit_transaction(_TIMEOUT_SECONDS)
        self._producer.poll(0)

    def _gone(self, topics: Iterable[str]) -> dict[str, str]:
        """Return which of the topics can't be published to, and why."""
        asked = {t: self._producer.list_topics(t, _TIMEOUT_SECONDS).topics[t].error for t in topics}
        return {
            t: fault.str() for t, fault in asked.items() if fault and fault.code() in TOPIC_FAULTS
        }

    def _produce(self, batches: Iterable[Batch]) -> None:
        produce = self._producer.produce
        for row in chain.from_iterable(batch.rows for batch in batches):
            _, topic, key, value, names, contents, partition, _ = row
            try:
                headers = headers_of(names, contents) if names else None
            except ValueError as fault:
                raise RejectedError([(row, str(fault))]) from fault
            place = -1 if partition is None else partition
            on_delivery = partial(self._failed, row) if self._careful else None
            while True:
                try:
                    produce(topic, value, key, place, on_delivery, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(_POLL_SECONDS)
                except KafkaException as refusal:
                    if refusal.args[0].code() not in REJECTIONS:
                        raise
                    raise RejectedError([(row, refusal.args[0].str())]) from refusal

    def _failed(self, row: Row, error: KafkaError, message: Message) -> None:
        self._faults.append((error, message))
        if error.code() in REJECTIONS:
            self._rejected.append((row, error.str()))

    def _verdict(self, what: str, failure: KafkaError, rows: Sequence[Row]) -> RemarkError:
        """Find out whether topics or records are at fault.

        The transaction is left to the next round, which settles it when it begins.
        """
        self._producer.purge(in_flight=False)
        self._producer.flush(_LONG_SECONDS)
        refuse_wrong_clock([failure, *(error for error, _ in self._faults)])
        reason = f"{what}: {failure.str()}"
        faults = [(error, message.topic() or "") for error, message in self._faults]
        topics = {topic: error.str() for error, topic in faults if error.code() in TOPIC_FAULTS}
        if rows and not topics and failure.code() in _UNNAMED_FAULTS:
            with suppress(KafkaException):  # who does not answer now is asked by the next round
                topics = forbidden(self._admin, {row[1] for row in rows})
        if topics:
            return RemarkError(reason, held_topics=topics)
        if self._rejected:
            return RejectedError(self._rejected)
        return RemarkError(reason, careful=any(error.code() in REJECTIONS for error, _ in faults))
