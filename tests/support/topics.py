"""Topics of a test's own, and what is published to them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harvest_dagster.embedded import Servers


@pytest.fixture
def topic() -> str:
    """A topic's name that nobody else uses."""
    return f"topic-{uuid.uuid4().hex}"


MakeTopic = Callable[..., str]


@pytest.fixture
def admin(servers: Servers) -> AdminClient:
    """For topics."""
    return AdminClient(dict(servers.kafka_config))


@pytest.fixture
def made_topic(admin: AdminClient, topic: str) -> MakeTopic:
    """Make this test's topic."""

    def make(**settings: str) -> str:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin.create_topics([NewTopic(topic, 2, 1, config=config)])[topic].result()
        return topic

    return make


Published = Callable[..., list[tuple[bytes, bytes]]]


@pytest.fixture
def published(servers: Servers) -> Iterator[Published]:
    """Read the first so many messages of a topic of two partitions, as pairs of key and value."""
    settings = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = Consumer({**servers.kafka_config, **settings, "enable.auto.commit": False})

    def read(topic: str, count: int) -> list[tuple[bytes, bytes]]:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
        found: list[tuple[bytes, bytes]] = []
        deadline = time.monotonic() + 20
        while len(found) < count and time.monotonic() < deadline:
            messages = consumer.consume(count - len(found), 0.5)
            found += [(m.key() or b"", m.value() or b"") for m in messages if not m.error()]
        return found

    yield read
    consumer.close()
