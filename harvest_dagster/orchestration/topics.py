"""How much is in Kafka's topics: asked now and then, on a thread that Kafka may block."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is

from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import HarvestError
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.text import one_line

_log = logging.getLogger(__name__)
_SECONDS = 30.0
_TIMEOUT_SECONDS = 5.0
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types of its own


class TopicCounts:
    """Asks until it is closed; `latest` never blocks."""

    def __init__(self, kafka: KafkaConfig, topics: Sequence[str]) -> None:
        self._kafka, self._topics = kafka, topics
        self._closed = threading.Event()
        self.latest: dict[str, int] = {}
        if topics:
            threading.Thread(target=self._run, name="harvest-topics", daemon=True).start()

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def _run(self) -> None:
        admin: AdminClient | None = None
        while not self._closed.is_set():
            try:
                admin = admin or make(AdminClient, client_settings(self._kafka, {}, {}))
                self.latest = {topic: _end(admin, topic) for topic in self._topics}
            except (HarvestError, KafkaException) as error:
                _log.info("the topics could not be read: %s", one_line(error))
            self._closed.wait(_SECONDS)


def _end(admin: AdminClient, topic: str) -> int:
    """Sum up the ends of a topic's partitions; a topic that is not there yet is empty."""
    found = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
    places = {TopicPartition(topic, number): _LATEST for number in found.partitions}
    if found.error is not None or not places:
        return 0
    ends = admin.list_offsets(places, request_timeout=_TIMEOUT_SECONDS)
    return sum(end.result().offset for end in ends.values())
