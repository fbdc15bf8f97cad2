"""What an operator does: a topic's limit, and records that were set aside for it."""

from __future__ import annotations

from contextlib import suppress

import psycopg
from confluent_kafka import KafkaException

from harvest_dagster.outbox import parked
from harvest_dagster.outbox.parked import Choice
from harvest_dagster.postgres.names import TableName
from tests.support.place import Place, set_limit

USUAL_LIMIT = 1_048_588


class Operator:
    """Looks after one outbox; whatever does not work out is tried again later."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.requeued = 0

    def limit(self, topic: str, size: int) -> bool:
        """Set the largest message that a topic takes; tell whether Kafka took that."""
        try:
            set_limit(self._place.admin, topic, size)
        except KafkaException:
            return False
        return True

    def requeue(self) -> int:
        """Put back what was set aside; tell how many records that were."""
        place = self._place
        with suppress(psycopg.OperationalError), psycopg.connect(place.postgres) as connection:
            found = parked.read(connection, Choice(place.name))
            if found:
                table = TableName("outbox")
                parked.requeue(connection, table, place.name, found, "the bench")
                connection.commit()
                self.requeued += len(found)
            return len(found)
        return 0
