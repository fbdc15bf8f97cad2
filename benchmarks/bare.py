"""What Kafka alone takes to commit: transactions of what is due by then, one after the other.

It is the floor of `exactly_once`: a producer that knows of no table, lease or claim, and has each
message the moment that it is due. Two producers take turns, as they must: Kafka sends away one that
begins again before its last transaction has settled.
"""

from __future__ import annotations

import time
from itertools import cycle

from confluent_kafka import Producer

from benchmarks.place import Place

_TIMEOUT = 30
_SHORT = 0.0005


def publish(here: Place, rate: int, seconds: int) -> dict[str, float]:
    """Publish so many a second; tell when each message was due."""
    turns = cycle([_producer(here, turn) for turn in range(2)])
    due: dict[str, float] = {}
    start, sent = time.time(), 0
    while sent < rate * seconds:
        until = min(int((time.time() - start) * rate) + 1, rate * seconds)
        if until <= sent:
            time.sleep(_SHORT)
            continue
        producer = next(turns)
        producer.begin_transaction()
        for number in range(sent, until):
            message = here.message(number, 1000, 100)
            producer.produce(here.topic, message.value, message.key, headers=[*message.headers])
            due[str(number)] = start + number / rate
        producer.commit_transaction(_TIMEOUT)
        sent = until
    return due


def _producer(here: Place, turn: int) -> Producer:
    own = {"transactional.id": f"{here.topic}.{turn}", "linger.ms": 0, "retry.backoff.ms": 2}
    producer = Producer({**here.kafka, **own})
    producer.init_transactions(_TIMEOUT)
    return producer
