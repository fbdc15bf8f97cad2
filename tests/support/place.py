"""Where a test harvests: a database, topics and names of its own, and configs for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from harvest_dagster import Message, stash
from harvest_dagster.embedded import Servers
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.ledger import events
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.lease import Lease
from tests.support.account import COMMITTED, PLAIN, Reader
from tests.support.waiting import DEADLINE_SECONDS, seconds_until, until

PARTITIONS = 4
_STATEMENTS = """
    SELECT pid, query_start FROM pg_stat_activity
     WHERE application_name LIKE %s AND datname = current_database()
"""
_WAITING = """
    SELECT pid FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND application_name LIKE %s AND datname = current_database()
"""


def set_limit(admin: AdminClient, topic: str, size: int, seconds: float = 10.0) -> None:
    """Let a topic take messages of up to so many bytes from now on."""
    set_topic(admin, topic, "max.message.bytes", str(size), seconds)


def set_topic(admin: AdminClient, topic: str, name: str, value: str, seconds: float = 10.0) -> None:
    """Change a setting of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource], request_timeout=seconds)[resource].result()


class Place:
    """A database with an outbox, a topic, and all that was ever stashed there."""

    def __init__(self, postgres: str, kafka: dict[str, Any]) -> None:
        self.postgres, self.kafka = postgres, kafka
        self.name = f"harvest-{uuid.uuid4().hex}"
        self.admin = AdminClient(kafka)
        self.topics = {f"{self.name}.neli"}
        self.topic = self.new_topic()
        self.stashed: list[Message] = []
        self.reader: Reader | None = None

    @contextmanager
    def watched(self) -> Iterator[Place]:
        """Have somebody read the topic all along."""
        self.reader = Reader(self.kafka, self.topic)
        try:
            yield self
        finally:
            self.reader.stop()

    def new_topic(self, name: str | None = None, *, partitions: int = PARTITIONS, **of: str) -> str:
        """Create a topic, with settings written with underscores."""
        name = name or f"topic-{uuid.uuid4().hex}"
        self.topics.add(name)
        settings = {key.replace("_", "."): value for key, value in of.items()}
        new = NewTopic(name, partitions, config=settings)
        self.admin.create_topics([new])[name].result(20)
        until(lambda: self.admin.list_topics(name, 10).topics[name].error is None)
        return name

    def widen(self, name: str, partitions: int) -> None:
        """Add partitions to a topic, up to a number."""
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(20)
        until(lambda: len(self.admin.list_topics(name, 10).topics[name].partitions) == partitions)

    def drop_topic(self, name: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([name])[name].result(20)

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Write a config as JSON may have it."""
        return {
            "name": self.name,
            "base_kafka": self.kafka,
            "postgres": self.postgres,
            "leader_topic": f"{self.name}.neli",
            **changes,
        }

    def config(self, **changes: Any) -> HarvestConfig:
        """Make a config of this place."""
        return HarvestConfig(**self.settings(**changes))

    def connect(self) -> psycopg.Connection[Any]:
        """Connect without transactions, whatever the database is set to meanwhile."""
        unaffected = "-c statement_timeout=0 -c default_transaction_read_only=off"
        return psycopg.connect(self.postgres, autocommit=True, options=unaffected)

    def rows(self, query: Any, parameters: Any = None) -> list[Any]:
        """Ask the database."""
        with self.connect() as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def in_transaction(self, topic: str) -> bool:
        """Return whether a transaction of Kafka's is open in a topic, behind which readers wait."""
        return self._ends(topic, COMMITTED) != self._ends(topic, PLAIN)

    def _ends(self, topic: str, isolation: str) -> list[Any]:
        settings = {**self.kafka, "group.id": self.name, "isolation.level": isolation}
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        reader = Consumer(settings)
        ends = [reader.get_watermark_offsets(place, 10) for place in places]
        reader.close()
        return ends

    def is_waiting(self, application: str) -> bool:
        """Tell whether a session whose name is LIKE that waits for a lock in this database."""
        return bool(self.rows(_WAITING, (application,)))

    def changed(self, query: str, parameters: Any = None, times: int = 1) -> None:
        """Wait until a query was seen to give another answer than before, so many times."""
        seen = set()

        def has_changed() -> bool:
            seen.add(tuple(self.rows(query, parameters)))
            return len(seen) > times

        until(has_changed, what=f"{query} has given {times} other answers")

    def goes_round(self, times: int = 20) -> None:
        """Wait until the marker was seen at so many other statements: it has been all round."""
        self.changed(_STATEMENTS, ("harvest %mark",), times)

    def renewed(self, times: int = 1) -> None:
        """Wait until whoever leads has proved it, and renewed the lease, so many times."""
        self.changed("SELECT renewed_at FROM harvest.lease", times=times)

    def stash(self, messages: Iterable[Message], outbox: str = "outbox") -> list[Message]:
        """Stash in a transaction of its own, and remember."""
        given = list(messages)
        with psycopg.connect(self.postgres) as connection:
            stash(connection, given, outbox=outbox)
        self.stashed += given
        return given

    def put(self, count: int, keys: int = 50, outbox: str = "outbox") -> list[Message]:
        """Stash messages that go on to count, over some keys."""
        return self.stash(islice(self.counting(keys), count), outbox)

    def counting(self, keys: int = 50) -> Iterator[Message]:
        """Count on from what was stashed, without stashing."""
        number = len(self.stashed)
        while True:
            yield Message(self.topic, f"k{number % keys}", str(number), {"trace": f"t{number}"})
            number += 1

    def waiting(self, outbox: str = "outbox") -> int:
        """How many records are in the outbox."""
        return int(self.rows(f"SELECT count(*) FROM {outbox}")[0][0])

    def drained(self, seconds: float = DEADLINE_SECONDS, outbox: str = "outbox") -> float:
        """Wait until the outbox is empty."""
        return seconds_until(lambda: not self.waiting(outbox), seconds, "the outbox is empty")

    def lease(self, shard: int = 0, ttl: float = 60.0) -> Lease:
        """Take the lease, and have the topic whose partitions stand for shards."""
        if f"{self.name}.neli" not in self.admin.list_topics(timeout=10).topics:
            self.new_topic(f"{self.name}.neli", partitions=PARTITIONS)
        with self.connect() as connection:
            return leases.acquire(connection, self.name, shard, f"test-{uuid.uuid4().hex}", ttl)

    def events(self, *kinds: str) -> list[Event]:
        """What was written down, oldest first."""
        with self.connect() as connection:
            return events.read(connection, self.name, kinds, limit=10_000)[::-1]

    def kinds(self, *kinds: str) -> list[str]:
        """The kinds of what was written down, oldest first."""
        return [event.kind for event in self.events(*kinds)]


@pytest.fixture
def place(servers: Servers, database: str) -> Iterator[Place]:
    """Give a place of this test's own."""
    own = Place(database, dict(servers.kafka_config))
    yield own
    for deleted in own.admin.delete_topics([*own.topics]).values():
        deleted.exception(20)  # some are gone already
