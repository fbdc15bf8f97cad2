"""A leader of the delivery `sequenced` that is gone, and what it had claimed and sent by then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg
from confluent_kafka import Producer

from harvest_dagster.harvest.placement import Rule
from harvest_dagster.harvest.sequenced_claims import SequencedBatch, SequencedClaims
from harvest_dagster.harvest.topic_book import TopicBook
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.sequence.uuids import HEADER, Flags, made
from tests.support.place import Place

_ROWS = """
    SELECT id, kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values
         , kafka_partition, NULL::bigint
      FROM outbox WHERE id BETWEEN %s AND %s ORDER BY id
"""


class GoneLeader:
    """It claims by the library's own code, and sends what of that a test says."""

    def __init__(
        self, place: Place, shards: int = 1, rule: Rule = "consistent_random", number: int = 1
    ) -> None:
        self._place = place
        self._producer = Producer({**place.kafka, "enable.idempotence": True, "linger.ms": 0})
        self._connection: psycopg.Connection[Any] = place.connect()
        topics = TopicBook(self._producer, place.admin, {})
        fence = Fence(place.lease())
        self._claims = SequencedClaims(self._connection, fence, topics, rule, shards, number)

    def claims(self, first: int, last: int) -> SequencedBatch:
        """Claim the records from one id to another."""
        return self._claims.claim(self._place.rows(_ROWS, (first, last)), 0)

    def sends(self, batch: SequencedBatch, only: Iterable[int] | None = None) -> None:
        """Send records of a batch, or only those with these ids, in their order."""
        ids = None if only is None else set(only)
        for row, clock, partition in batch.places:
            if ids is None or row[0] in ids:
                identity = made(batch.producer, clock, Flags.OUTSIDE)
                headers: Any = [*zip(row[4] or [], row[5] or [], strict=True), (HEADER, identity)]
                self._producer.produce(row[1], row[3], row[2], partition, headers=headers)
        assert self._producer.flush(20) == 0

    def close(self) -> None:
        """Let go."""
        self._connection.close()
