"""Which topics can be published to now, and how large a message each takes.

The marker asks before it marks; only for a topic that it has not seen, or that is held, does that
ask Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from concurrent.futures import Future

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._topic import TopicDescription

from harvest_dagster.errors import KafkaError
from harvest_dagster.harvest.rejections import TOPIC_FAULTS
from harvest_dagster.kafka.refusals import explained
from harvest_dagster.outbox.record import is_topic

_ASK_SECONDS = 10.0
_RETRY_SECONDS = 0.5
_LIMIT_SECONDS = 30.0
_COMPACTED = (
    "it is compacted, which may keep an old message that came again: publish to it exactly_once"
)


def forbidden(
    admin: AdminClient, topics: Collection[str], seconds: float = _ASK_SECONDS
) -> dict[str, str]:
    """Return the topics that we may not write to, each with the reason, as far as Kafka says."""
    asked = admin.describe_topics(
        TopicCollection([*topics]), include_authorized_operations=True, request_timeout=seconds
    )
    return {topic: "not authorised to write" for topic in topics if _is_forbidden(asked[topic])}


def _is_forbidden(asked: Future[TopicDescription]) -> bool:
    try:
        allowed = asked.result().authorized_operations
    except KafkaException as failure:
        if failure.args[0].code() in TOPIC_FAULTS:
            return True
        raise
    return bool(allowed) and AclOperation.WRITE not in allowed


class TopicBook:
    """What is known of topics; used by the marker's thread alone."""

    def __init__(
        self,
        producer: Producer,
        admin: AdminClient,
        held: dict[str, str],
        ask_seconds: float = _ASK_SECONDS,
        *,
        uncompacted: bool = False,
    ) -> None:
        self._uncompacted = uncompacted
        self._producer, self._admin, self._ask_seconds = producer, admin, ask_seconds
        self._good: set[str] = set()
        self._limits: dict[str, tuple[int | None, float]] = {}
        self._widths: dict[str, tuple[int, float]] = {}
        self.held = held
        self._next_try = 0.0

    def fault(self, topic: str) -> str | None:
        """Return why a topic can't be published to, or nothing if it can."""
        if topic in self._good:
            return None
        if topic not in self.held:
            self._ask(topic)
        return self.held.get(topic)

    def released(self) -> list[str]:
        """Ask for the held topics again, now and then; return which can be published to."""
        if not self.held or time.monotonic() < self._next_try:
            return []
        self._next_try = time.monotonic() + _RETRY_SECONDS
        before = list(self.held)
        for topic in before:
            self._ask(topic)
        return [topic for topic in before if topic not in self.held]

    def limit(self, topic: str) -> int | None:
        """Return a topic's max.message.bytes, or nothing if it may not be read."""
        known = self._limits.get(topic)
        if known is None or time.monotonic() > known[1]:
            known = (self._ask_limit(topic), time.monotonic() + _LIMIT_SECONDS)
            self._limits[topic] = known
        return known[0]

    def width(self, topic: str) -> int:
        """Return how many partitions a topic has; the client asks anew now and then."""
        known = self._widths.get(topic)
        if known is None or time.monotonic() > known[1]:
            found = len(
                self._producer.list_topics(topic, self._ask_seconds).topics[topic].partitions
            )
            known = self._widths[topic] = (found, time.monotonic() + _LIMIT_SECONDS)
        return known[0]

    def forget_limits(self) -> None:
        """Ask for the limits anew: an operator may have raised one."""
        self._limits.clear()

    def _ask(self, topic: str) -> None:
        if not is_topic(topic):  # SQL can stash any; of a long one the client makes an exception
            self.held[topic] = "no topic that takes messages can be called so"
            return
        try:
            error = self._producer.list_topics(topic, self._ask_seconds).topics[topic].error
        except KafkaException as failure:
            why = explained(failure)
            raise KafkaError(f"Kafka did not tell of topic {topic}: {why}") from failure
        fault = None if error is None else error.str()
        if fault is None and topic in self.held:
            try:
                fault = forbidden(self._admin, [topic], self._ask_seconds).get(topic)
            except KafkaException as failure:
                fault = explained(failure)
        if fault is None and self._uncompacted and self._is_compacted(topic):
            fault = _COMPACTED
        if fault is None:
            self._good.add(topic)
            self.held.pop(topic, None)
        else:
            self.held[topic] = fault

    def _ask_limit(self, topic: str) -> int | None:
        # Where it is not told, Kafka itself will refuse.
        found = self._setting(topic, "max.message.bytes")
        return None if found is None else int(found)

    def _is_compacted(self, topic: str) -> bool:
        return "compact" in (self._setting(topic, "cleanup.policy") or "")

    def _setting(self, topic: str, name: str) -> str | None:
        """Return a setting, or nothing: not all may describe topics, nor all brokers answer."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self._admin.describe_configs([resource], request_timeout=self._ask_seconds)
        try:
            return str(asked[resource].result()[name].value)
        except KafkaException:
            return None
