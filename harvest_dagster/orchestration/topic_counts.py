"""Where Kafka's topics end: asked now and then, on a thread that Kafka may block."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is

from harvest_dagster.clock import now
from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import HarvestError
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.text import one_line

_log = logging.getLogger(__name__)
_SECONDS = 30.0
_TIMEOUT_SECONDS = 5.0
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types of its own


class TopicCounts:
    """Asks again when somebody wants to know, and the last answer is old; it never blocks."""

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics
        self._asked_at = -math.inf
        self._latest: dict[str, int] = {}
        self._one_asks = threading.Lock()

    def latest(self, kafka: KafkaConfig) -> dict[str, int]:
        """Return the last answer, by topic."""
        due = now() - self._asked_at >= _SECONDS
        if self._topics and due and self._one_asks.acquire(blocking=False):
            self._asked_at = now()
            threading.Thread(
                target=self._ask, args=(kafka,), name="harvest-topics", daemon=True
            ).start()
        return self._latest

    def _ask(self, kafka: KafkaConfig) -> None:
        try:
            admin = make(AdminClient, client_settings(kafka, {}, {}))
            self._latest = {topic: _end(admin, topic) for topic in self._topics}
        except (HarvestError, KafkaException) as error:
            _log.info("the topics could not be read: %s", one_line(error))
        finally:
            self._one_asks.release()


def _end(admin: AdminClient, topic: str) -> int:
    """Sum up the ends of a topic's partitions; a topic that is not there yet is empty."""
    found = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
    places = {TopicPartition(topic, number): _LATEST for number in found.partitions}
    if found.error is not None or not places:
        return 0
    ends = admin.list_offsets(places, request_timeout=_TIMEOUT_SECONDS)
    return sum(end.result().offset for end in ends.values())
