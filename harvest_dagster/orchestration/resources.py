"""The resources that sensor, ops and assets are configured with.

What is not given comes from harvest_dagster's settings, so that without a word all of them find the
servers that `harvest dev up` has started. Every field may be an `EnvVar`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import dagster as dg
from confluent_kafka import Producer
from pydantic import Field

from harvest_dagster.config import KafkaConfig, load_settings
from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.kafka.topics import ensure_topic
from harvest_dagster.orchestration.fields import FIELDS, config_type, values_for, with_fields
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.stasher import stash
from harvest_dagster.postgres.names import TableName


class OutboxResource(dg.ConfigurableResource[None]):
    """An outbox: the table that messages are stashed into."""

    postgres: str | None = Field(
        default=None, description="postgresql://...; without it, the settings' own"
    )
    table: str | None = Field(
        default=None, description="table or schema.table; without it, the settings' own"
    )

    def url(self) -> str:
        """Return the address of the database, with the password; never print it."""
        return load_settings(postgres=self.postgres).postgres_url()

    def table_name(self) -> TableName:
        """Return the table's name, checked."""
        return TableName.parse(load_settings(outbox=self.table).outbox)

    def options(self) -> dict[str, str]:
        """Return Spark's options for it; never print them, for a URL has the password.

        An address of the settings is not among them: a server of Spark Connect reads its own.
        """
        url = {"url": self.url()} if self.postgres else {}
        return {**url, "outbox": str(self.table_name())}

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
        """Return the settings of every client; never print them."""
        own: KafkaConfig = dict(self.settings)
        if self.bootstrap_servers is not None:
            return {**own, "bootstrap.servers": self.bootstrap_servers}
        return own if "bootstrap.servers" in own else {**load_settings().kafka_config(), **own}

    def check(self) -> None:
        """Raise a ConfigError for a setting that librdkafka does not know, or can't read.

        A client is made for that; it has no brokers, so it calls nobody but for a token, which may
        be out of reach from here.
        """
        given = {**self.settings, **self.producer_settings}
        places = {"bootstrap.servers", "metadata.broker.list"}
        settings = {key: value for key, value in given.items() if key not in places}
        with suppress(UnreachableError):
            make(Producer, client_settings(settings, {}, {}))

    def ensure_topic(self, topic: str, partitions: int = 4) -> bool:
        """Create a topic that is missing; return whether it was."""
        return ensure_topic(self.config(), topic, partitions)


_ELECTION = {
    name: FIELDS[name]
    for name in ("name", "label", "leader_topic", "leader_group", "shards", "heartbeat_timeout")
}
_HARVEST = {name: field for name, field in FIELDS.items() if name not in _ELECTION}


@with_fields(_ELECTION, config_type)
class NeliResource(dg.ConfigurableResource[None]):
    """The election: candidates of one group on one topic of Kafka, whose owner leads."""

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - each of its field's type
        super().__init__(**fields)


@with_fields(_HARVEST, config_type)
class HarvestResource(dg.ConfigurableResource["HarvestResource"]):
    """A harvest: from an outbox, by a leader, into Kafka."""

    outbox: OutboxResource = Field(default_factory=OutboxResource)
    kafka: KafkaResource = Field(default_factory=KafkaResource)
    neli: NeliResource = Field(default_factory=NeliResource)

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - each of its field's type
        super().__init__(**fields)

    def limits(self) -> Limits:
        """Return how much, how often and how long; raise a ConfigError that names the field."""
        return Limits.model_validate(values_for(Limits, self, self.neli))

    def config(self) -> HarvestConfig:
        """Return all that the engine must know; raise a ConfigError that names the field."""
        return self._config(self.outbox.url(), self.kafka.config())

    def led(self) -> Harvesting:
        """Return the harvest as something that is led."""
        return Harvesting(self.config())

    def check(self) -> None:
        """Raise a ConfigError for whatever is wrong in itself, wherever the servers may be."""
        with self.process_config_and_initialize_cm() as here:
            url = here.outbox.postgres or "postgresql://nowhere"
            here.kafka.check()
            here._config(url, {"bootstrap.servers": "nowhere:9092", **here.kafka.settings})  # noqa: SLF001 - one of us

    def _config(self, url: str, kafka: KafkaConfig) -> HarvestConfig:
        return HarvestConfig.model_validate(
            {
                **values_for(HarvestConfig, self, self.neli),
                "outbox": str(self.outbox.table_name()),
                "postgres": url,
                "base_kafka": kafka,
                "producer_kafka": dict(self.kafka.producer_settings),
                "limits": self.limits(),
            }
        )
