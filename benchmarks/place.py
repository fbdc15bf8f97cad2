"""A database and topics of a benchmark's own, on the servers that the settings name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import psycopg
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harvest_dagster import Message, load_settings
from harvest_dagster.config import KafkaConfig
from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName

VALUE = 100
PARTITIONS = 4
_FILL = """
    INSERT INTO outbox (kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values)
    SELECT %s, convert_to((n %% %s)::text, 'UTF8'), convert_to(rpad(n::text, %s), 'UTF8'),
           ARRAY['trace'], ARRAY['ab12cd34'::bytea]
      FROM generate_series(0, %s - 1) AS n
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one benchmark runs."""

    url: str
    kafka: KafkaConfig
    topic: str
    leader_topic: str

    def config(self, delivery: str, shards: int = 1, **limits: int) -> HarvestConfig:
        """A harvest of this place."""
        return HarvestConfig.model_validate(
            {
                "name": self.leader_topic,
                "base_kafka": self.kafka,
                "leader_topic": self.leader_topic,
                "postgres": self.url,
                "delivery": delivery,
                "shards": shards,
                "limits": Limits(**limits),
            }
        )

    def as_json(self) -> str:
        """Write it down for a process of its own, which makes `Place(**json.loads(...))` of it."""
        return json.dumps(asdict(self))

    def fill(self, records: int, keys: int = 1000, size: int = VALUE) -> None:
        """Make a backlog of what `message` tells, and have it settle."""
        self.commit(records, keys, size)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE outbox")

    def commit(self, records: int, keys: int = 1000, size: int = VALUE) -> None:
        """Commit so many records at once, by PostgreSQL alone, which is several times as fast."""
        with psycopg.connect(self.url) as connection:
            connection.execute(_FILL, [self.topic, keys, size, records])

    def message(self, number: int, keys: int, size: int) -> Message:
        """One record, which begins with its number."""
        value = str(number).encode().ljust(size)
        return Message(self.topic, str(number % keys), value, {"trace": b"ab12cd34"})


@contextmanager
def place(shards: int = 1) -> Iterator[Place]:
    """Make a place, and remove it in the end."""
    settings = load_settings()
    url, kafka = settings.postgres_url(), settings.kafka_config()
    name = uuid.uuid4().hex
    here = Place(_with_database(url, f"bench_{name}"), kafka, f"bench-{name}", f"lead-{name}")
    admin = AdminClient(kafka)
    topics = [NewTopic(here.topic, PARTITIONS), NewTopic(here.leader_topic, shards)]
    for made in admin.create_topics(topics).values():
        made.result()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "bench_{name}"')
        try:
            with psycopg.connect(here.url) as own:
                create(own, TableName("outbox"), Kind.NATIVE)
            yield here
        finally:
            connection.execute(f'DROP DATABASE "bench_{name}" WITH (FORCE)')
            admin.delete_topics([here.topic, here.leader_topic])


def _with_database(url: str, database: str) -> str:
    base, mark, options = url.partition("?")
    return f"{base.rpartition('/')[0]}/{database}{mark}{options}"
