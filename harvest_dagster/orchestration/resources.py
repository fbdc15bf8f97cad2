"""The resources that sensor, ops and assets are configured with.

What is not given comes from harvest_dagster's settings, so that without a word all of them find the
servers that `harvest dev up` has started. Every field may be an `EnvVar`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
from confluent_kafka import Producer
from pydantic import Field

from harvest_dagster.config import KafkaConfig, load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.durations import parse_duration
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.kafka.topics import ensure_topic
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.stasher import stash
from harvest_dagster.postgres.connect import Patience, connect
from harvest_dagster.postgres.names import TableName

_TICK = Patience(connect=3, statement=10)


class OutboxResource(dg.ConfigurableResource[None]):
    """An outbox: the table that messages are stashed into."""

    postgres: str | None = Field(
        default=None, description="postgresql://...; without it, the settings' own"
    )
    table: str | None = Field(
        default=None, description="table or schema.table; without it, the settings' own"
    )

    def url(self) -> str:
        """Tell where the database is, with the password; never print it."""
        return load_settings(postgres=self.postgres).postgres_url()

    def table_name(self) -> TableName:
        """Tell the table, checked."""
        return TableName.parse(load_settings(outbox=self.table).outbox)

    def options(self) -> dict[str, str]:
        """Tell Spark's options for it; never print them, for a URL has the password.

        What the settings tell, a server of Spark Connect reads there itself: it is not sent.
        """
        url = {"url": self.url()} if self.postgres else {}
        return {**url, "outbox": str(self.table_name())}

    @contextmanager
    def connection(
        self, purpose: str, patience: Patience = _TICK
    ) -> Iterator[psycopg.Connection[Any]]:
        """Connect, each statement being a transaction of its own."""
        with connect(self.url(), purpose, patience) as connection:
            yield connection

    @contextmanager
    def reading(self, purpose: str) -> Iterator[psycopg.Connection[Any]]:
        """Connect likewise, to look at the outbox: by its index, past rows that are dead."""
        with connect(self.url(), purpose, _TICK, by_index=True) as connection:
            yield connection

    def stash(self, target: Any, messages: Message | Iterable[Message]) -> int:  # noqa: ANN401 - whatever `stash` takes
        """Stash inside the transaction of a session, connection or cursor."""
        return stash(target, messages, outbox=str(self.table_name()))


class KafkaResource(dg.ConfigurableResource[None]):
    """A Kafka cluster, by librdkafka's settings."""

    bootstrap_servers: str | None = Field(
        default=None, description="host:9092,...; without it, the settings' own"
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="any other of librdkafka's settings, for every client"
    )
    producer_settings: dict[str, str] = Field(
        default_factory=dict, description="librdkafka's settings for the producer alone"
    )

    def config(self) -> KafkaConfig:
        """Tell the settings of every client; never print them."""
        own: KafkaConfig = dict(self.settings)
        if self.bootstrap_servers is not None:
            return {**own, "bootstrap.servers": self.bootstrap_servers}
        return own if "bootstrap.servers" in own else {**load_settings().kafka_config(), **own}

    def check(self) -> None:
        """Raise a ConfigError for a setting that librdkafka does not know, or can't read.

        A client without brokers tells: it calls nobody.
        """
        given = {**self.settings, **self.producer_settings}
        places = {"bootstrap.servers", "metadata.broker.list"}
        settings = {key: value for key, value in given.items() if key not in places}
        make(Producer, client_settings(settings, {}, {}))

    def ensure_topic(self, topic: str, partitions: int = 4) -> bool:
        """Create a topic that is missing; tell whether it was."""
        return ensure_topic(self.config(), topic, partitions)


class NeliResource(dg.ConfigurableResource[None]):
    """The election: candidates of one group on one topic of Kafka, whose owner leads."""

    name: str | None = Field(
        default=None, description="what the harvest is called; without it, like its table"
    )
    leader_topic: str | None = Field(default=None, description="without it, <name>.neli")
    leader_group: str | None = Field(default=None, description="without it, <name>")
    shards: int = Field(default=1, description="how many leaders share the outbox's keys")
    heartbeat_timeout: str = Field(
        default="5s", description="how long a leader may go without a proof, as 5s or 500ms"
    )


class HarvestResource(dg.ConfigurableResource["HarvestResource"]):
    """A harvest: from an outbox, by a leader, into Kafka."""

    outbox: OutboxResource = Field(default_factory=OutboxResource)
    kafka: KafkaResource = Field(default_factory=KafkaResource)
    neli: NeliResource = Field(default_factory=NeliResource)
    delivery: str = Field(default="exactly_once", description="exactly_once or at_least_once")
    marks: str = Field(default="claims", description="claims, or rows where goharvest reaps too")
    on_rejected: str = Field(
        default="hold_key", description="what a parked record does to its key: hold_key or skip"
    )
    retention: str | None = Field(
        default=None, description="how long purged records are kept aside, as 24h; else not at all"
    )
    drain_timeout: str = Field(
        default="10s", description="how long what is in flight may take to settle, at a hand-over"
    )
    max_in_flight_records: int | None = Field(default=None, description="what back-pressure allows")

    def config(self) -> HarvestConfig:
        """Tell all that the engine must know; raise a ConfigError that names the field."""
        return self._config(self.outbox.url(), self.kafka.config())

    def check(self) -> None:
        """Raise a ConfigError for whatever is wrong in itself, wherever the servers may be."""
        with self.process_config_and_initialize_cm() as here:
            url = here.outbox.postgres or "postgresql://nowhere"
            here.kafka.check()
            here._config(url, {"bootstrap.servers": "nowhere:9092", **here.kafka.settings})  # noqa: SLF001 - one of us

    def _config(self, url: str, kafka: KafkaConfig) -> HarvestConfig:
        neli = self.neli
        given: dict[str, Any] = {
            "outbox": str(self.outbox.table_name()),
            "postgres": url,
            "base_kafka": kafka,
            "producer_kafka": dict(self.kafka.producer_settings),
            "name": neli.name,
            "leader_topic": neli.leader_topic,
            "leader_group": neli.leader_group,
            "shards": neli.shards,
            "delivery": self.delivery,
            "marks": self.marks,
            "on_rejected": self.on_rejected,
            "retention": None if self.retention is None else _seconds("retention", self.retention),
            "limits": self._limits(),
        }
        return HarvestConfig.model_validate({k: v for k, v in given.items() if v is not None})

    def _limits(self) -> Limits:
        given: dict[str, Any] = {
            "heartbeat_timeout": _seconds("heartbeat_timeout", self.neli.heartbeat_timeout),
            "drain_timeout": _seconds("drain_timeout", self.drain_timeout),
            "max_in_flight_records": self.max_in_flight_records,
        }
        return Limits.model_validate({k: v for k, v in given.items() if v is not None})


def _seconds(field: str, duration: str) -> float:
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise ConfigError(f"{field}: {error}") from None
