"""Which of Kafka's errors are a record's own fault, and which a topic's; all others pass."""

from __future__ import annotations

from confluent_kafka import KafkaError

REJECTIONS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_ARG,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)
"""What Kafka will never take, however often it is asked."""

TOPIC_FAULTS = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    }
)
"""What holds all records of a topic until an operator has mended it."""
