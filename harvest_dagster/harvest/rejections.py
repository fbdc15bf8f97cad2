"""Which of Kafka's errors are a record's own fault, and which a topic's; all others pass."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError

from harvest_dagster.errors import ClockError

REJECTIONS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.RECORD_LIST_TOO_LARGE,
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


def refuse_wrong_clock(errors: Iterable[KafkaError]) -> None:
    """Raise what ends the harvest if Kafka refused the time of messages, which is this machine's.

    No other try mends that here; another candidate may have a better clock.
    """
    for error in errors:
        if error.code() == KafkaError.INVALID_TIMESTAMP:
            raise ClockError(f"{error.str()}: set this machine's clock, which is not Kafka's")
