"""The configuration of a reader, frozen and validated; no error of it shows a value."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, field_serializer, field_validator

from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import ConfigError
from harvest_dagster.kafka.settings import masked
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.work.checked import Checked, Count, KafkaName, Name, group_of
from harvest_dagster.work.durations import Pause, Period

_DAY = 86_400.0


class ReaderConfig(Checked):
    """All that a reader must know, but its store and what it does with what it reads."""

    name: Name
    """the reader's own name: in its positions, in the lease, in events and as a group of Kafka's"""
    topics: tuple[KafkaName, ...] = Field(min_length=1)
    """what is read"""
    kafka: KafkaConfig = Field(
        repr=False, description="librdkafka's settings for every client, bootstrap.servers at least"
    )
    postgres: SecretStr = Field(
        description="postgresql://... of the lease and the events; the store may be another"
    )
    uuid: Literal["optional", "required"] = "optional"
    """optional takes a record without a UUID by its offset; required stops there"""
    ring: Count = 8192
    """how many pending messages are kept at hand; more are read again from Kafka"""
    horizon: Pause = _DAY
    """when a producer that is not stable is forgotten, as 24h; 0 forgets nobody"""
    batch_messages: Count = 10_000
    """how many messages are applied at once, at most; a span is never divided"""
    batch_bytes: Count = 16 * 1024 * 1024
    """how many bytes their values may have"""
    batch_seconds: Period = 1.0
    """how long a batch is gathered, at most"""
    shards: Count = 1
    """how many leaders share the partitions: partition p is of shard p % shards"""
    drain_timeout: Period = 30.0
    """how long a batch may take to end when a leader hands over"""
    label: Name | None = None
    """names this process in the lease's holder; without it, host and process id"""

    @property
    def group(self) -> str:
        """The group of Kafka's whose offsets follow, for tools that show a lag."""
        return group_of(self.name)

    @property
    def postgres_url(self) -> str:
        """Where the lease is; never print it."""
        return connection_string(self.postgres.get_secret_value())

    @field_validator("topics", mode="before")
    @classmethod
    def _are_several(cls, given: object) -> object:
        return (given,) if isinstance(given, str) else given

    @field_validator("topics")
    @classmethod
    def _are_different(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topics))

    @field_validator("kafka")
    @classmethod
    def _names_brokers(cls, value: KafkaConfig) -> KafkaConfig:
        if not value.get("bootstrap.servers"):
            raise ValueError("it needs bootstrap.servers, as host:9092")
        return value

    @field_validator("postgres")
    @classmethod
    def _is_place(cls, value: SecretStr) -> SecretStr:
        try:
            return SecretStr(connection_string(value.get_secret_value()))
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_serializer("kafka")
    def _masked(self, settings: KafkaConfig) -> KafkaConfig:
        return masked(settings)
