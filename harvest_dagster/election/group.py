"""A candidate's place in the consumer group: what Kafka gives it, and the proof that it still does.

The proof is a commit of the leader partitions' offsets: the coordinator checks member
and generation, refuses whoever is no member, and otherwise starts the session's time anew.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ErrorCode

from harvest_dagster.clock import now
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.kafka.refusals import unreachable
from harvest_dagster.kafka.settings import client_settings, make

_LOGGER = logging.getLogger("harvest_dagster.election")
_HEARTBEAT_MS = 500
_HANG_SECONDS = 30
_ANSWER_SECONDS = 0.5
_FAULTS = 10
_OWNED = {
    "group.id": "it is leader_group",
    "group.instance.id": "a static member's place is kept when it leaves, and nobody takes over",
    "group.protocol": "only the classic protocol lets a candidate choose its session timeout",
    "session.timeout.ms": "it is session_timeout_ms",
    "heartbeat.interval.ms": "it follows from the session timeout",
    "max.poll.interval.ms": "it follows from drain_seconds",
    "enable.auto.commit": "a candidate's commit is its proof of leadership",
}
_BETWEEN_GENERATIONS = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
)
Shards = list[int]


class Group:
    """One membership, from joining to leaving; used by the candidate's thread alone.

    To wait for a commit, or to close the consumer, may take as long as a broker hangs, and nothing
    else can be called meanwhile. So commits are not waited for, and closing is, but not for long.
    """

    def __init__(
        self,
        settings: CandidateSettings,
        on_assigned: Callable[[], None],
        on_revoked: Callable[[Shards], None],
        on_lost: Callable[[Shards], None],
    ) -> None:
        self._topic, self._shards = settings.leader_topic, settings.shards
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost
        self.owned: set[int] = set()
        self._leave_seconds = settings.session_seconds
        self._leaving = False
        self.in_callback = False
        self.asked_at: float | None = None
        self._answer: Callable[[], None] | None = None
        self._servers = str(settings.kafka["bootstrap.servers"])
        self._faults: deque[ErrorCode] = deque(maxlen=_FAULTS)
        calls: dict[str, Callable[..., None]] = {
            "on_commit": self._answered,
            "error_cb": self._faults.append,
        }
        self._consumer: Consumer = make(Consumer, _consumer_settings(settings, calls))
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def poll(self, seconds: float) -> None:
        """Let Kafka tell what is new; the callbacks run in here, on this thread."""
        message = self._consumer.poll(seconds)
        error = message.error() if message is not None else None
        if error is not None:
            raise KafkaException(error)

    def prove(self) -> float | None:
        """Return when the coordinator was asked, if it said yes; None if it has not answered yet.

        It raises a KafkaException if the coordinator said no. It does not block, and the answer
        comes with a later poll; but in a callback, where nobody polls, it waits for the answer.
        """
        if self.in_callback:
            asked_at = now()
            _check(self._consumer.commit(offsets=self._offsets(), asynchronous=False))
            return asked_at
        if self.asked_at is None:
            self.asked_at = now()
            self._consumer.commit(offsets=self._offsets(), asynchronous=True)
        if self._answer is None:
            return None
        asked_at, answer = self.asked_at, self._answer
        self.asked_at = self._answer = None
        answer()
        return asked_at

    def trouble(self) -> str | None:
        """Return why Kafka can't be reached, if anything was wrong with a connection lately.

        It may be that of one broker of many, and the client never says that it is over. So ask
        whether Kafka `answers`; once it does, say so to `reached`.
        """
        return unreachable(self._servers, self._faults) if self._faults else None

    def reached(self) -> None:
        """Forget what was said of the connections: Kafka has answered."""
        self._faults.clear()

    def answers(self) -> bool:
        """Return whether Kafka answers; it blocks for a moment, so ask while nothing is owned."""
        try:
            self._consumer.list_topics(self._topic, timeout=_ANSWER_SECONDS)
        except KafkaException:
            return False
        return True

    def leave(self) -> None:
        """Leave, so that Kafka hands over at once; without a word if it does not answer in time."""
        self._leaving = True
        closing = threading.Thread(target=self._consumer.close, name="harvest-leave", daemon=True)
        closing.start()
        closing.join(self._leave_seconds)
        if closing.is_alive():
            _LOGGER.warning("Kafka does not answer; left the group without a word")

    def _answered(self, error: ErrorCode | None, offsets: list[TopicPartition]) -> None:
        self._answer = partial(_check, offsets, error)

    def _offsets(self) -> list[TopicPartition]:
        return [self._offset(shard) for shard in sorted(self.owned)]

    def _offset(self, shard: int) -> TopicPartition:
        # The end of the partition as far as it is known: whoever shares the group with goharvest,
        # which reads heartbeats there, does not make it read them all again.
        known = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, shard), cached=True
        )
        return TopicPartition(self._topic, shard, max(0, known[1]))

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned.update(self._ours(partitions))
        self._on_assigned()

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._leaving:  # then this is another thread, and nothing is held any more
            return
        self.in_callback = True
        try:
            self._on_revoked(self._ours(partitions))
        finally:
            self.in_callback = False
        self.owned.difference_update(self._ours(partitions))

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._leaving:
            return
        self.owned.difference_update(self._ours(partitions))
        self._on_lost(self._ours(partitions))

    def _ours(self, partitions: list[TopicPartition]) -> Shards:
        return sorted(place.partition for place in partitions if place.partition < self._shards)


def is_expelled(error: KafkaException) -> bool:
    """Return whether the coordinator knows us no longer."""
    return bool(error.args[0].code() == ErrorCode.UNKNOWN_MEMBER_ID)


def is_rebalance(error: KafkaException) -> bool:
    """Return whether a commit was only caught between two generations: the next one decides."""
    return error.args[0].code() in _BETWEEN_GENERATIONS


def is_topic_gone(error: KafkaException) -> bool:
    """Return whether somebody deleted the leader topic."""
    return bool(error.args[0].code() == ErrorCode.UNKNOWN_TOPIC_OR_PART)


def _check(offsets: list[TopicPartition], error: ErrorCode | None = None) -> None:
    for fault in (error, *(offset.error for offset in offsets)):
        if fault is not None:
            raise KafkaException(fault)


def _consumer_settings(
    settings: CandidateSettings, calls: Mapping[str, Callable[..., None]]
) -> dict[str, Any]:
    defaults: dict[str, object] = {
        # Cooperative and sticky: a candidate that joins takes nothing away from a leader.
        "partition.assignment.strategy": "cooperative-sticky",
        "auto.offset.reset": "latest",
        "topic.metadata.refresh.interval.ms": 10_000,
        "socket.timeout.ms": max(10_000, settings.session_timeout_ms),
    }
    extra: dict[str, object] = {
        "group.id": settings.leader_group,
        "group.protocol": "classic",
        "session.timeout.ms": settings.session_timeout_ms,
        "heartbeat.interval.ms": min(_HEARTBEAT_MS, settings.session_timeout_ms // 4),
        # A candidate whose thread hangs is replaced after this, however alive its process is.
        "max.poll.interval.ms": settings.session_timeout_ms
        + int(1000 * (_HANG_SECONDS + settings.drain_seconds)),
        "enable.auto.commit": False,
        **calls,
    }
    return client_settings({**defaults, **settings.kafka}, extra, _OWNED)
