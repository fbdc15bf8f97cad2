"""What is known of topics when nobody answers."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from harvest_dagster.errors import KafkaError
from harvest_dagster.harvest.topic_book import TopicBook, forbidden

NOWHERE: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
ASK_SECONDS = 0.3


@pytest.fixture
def book() -> TopicBook:
    """A book whose Kafka is down."""
    return TopicBook(Producer(NOWHERE), AdminClient(NOWHERE), {"held": "missing"}, ASK_SECONDS)


def test_a_limit_that_nobody_tells(book: TopicBook) -> None:
    """It counts as none: Kafka itself refuses what is too large."""
    assert book.limit("orders") is None


def test_a_topic_that_nobody_knows_of(book: TopicBook) -> None:
    """Whether it can be published to is not guessed."""
    with pytest.raises(KafkaError, match="orders"):
        book.fault("orders")


def test_a_right_that_nobody_tells() -> None:
    """Silence is taken neither for a permission nor for a refusal."""
    with pytest.raises(KafkaException):
        forbidden(AdminClient(NOWHERE), ["held"], ASK_SECONDS)
