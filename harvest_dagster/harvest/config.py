"""The configuration of a harvest, frozen and validated.

A value is never shown: neither by the repr, the str or a dump of a config that has secrets, nor
by the `ConfigError` that says which field is wrong and what may stand there. (pydantic's own
errors show their input, so none of them gets out.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from warnings import warn

from pydantic import (
    Field,
    SecretStr,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from harvest_dagster.config import DEFAULT_OUTBOX, KafkaConfig
from harvest_dagster.errors import ConfigError
from harvest_dagster.kafka.settings import masked
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.names import TableName
from harvest_dagster.work.address import whole_address
from harvest_dagster.work.checked import Checked, Count, KafkaName, Name, NamedFields, group_of
from harvest_dagster.work.durations import Pause, Period

Delivery = Literal["exactly_once", "at_least_once", "sequenced"]
Marks = Literal["claims", "rows"]
OnRejected = Literal["hold_key", "skip"]

Records: TypeAlias = "tuple[int, int]"
"""How many records may be in flight, and how many a mark takes."""

RECORDS: dict[Delivery, Records] = {
    "exactly_once": (20_000, 5_000),
    "at_least_once": (4_000, 1_000),
    "sequenced": (20_000, 5_000),
}

TRUST_MARGIN_SECONDS = 1.0
"""How long before the end of its session a leader ceases to trust its lease."""
_LEAST_SESSION_SECONDS = 6.0
"""Kafka's own default for the shortest session of a group's member."""


@dataclass(frozen=True)
class Origin(NamedFields):
    """Where a config was read, and how many records it takes by default there."""

    records: Mapping[Delivery, Records] = field(default_factory=lambda: RECORDS)


class Limits(Checked):
    """How much, how often and how long; durations are in seconds."""

    io_error_backoff: Pause = 0.5
    """the first pause after an error; it doubles up to 10 s"""
    heartbeat_timeout: Period = 5.0
    """how long a leader may go without proof that it leads"""
    drain_timeout: Period = 30.0
    """how long what is in flight may take to settle when a leader hands over"""
    max_in_flight_records: Count = Field(default_factory=lambda: RECORDS["exactly_once"][0])
    """how many records may be marked and not purged yet"""
    max_in_flight_bytes: Count = 32 * 1024 * 1024
    """how many bytes their values may have"""
    mark_query_records: Count = Field(
        default_factory=lambda data: min(RECORDS["exactly_once"][1], data["max_in_flight_records"])
    )
    """how many records are marked at once"""
    min_metrics_interval: Pause = 5.0
    """how often the backlog is read"""

    @property
    def session_seconds(self) -> float:
        """How long Kafka waits for a silent leader until another may have its shards."""
        return max(self.heartbeat_timeout + TRUST_MARGIN_SECONDS, _LEAST_SESSION_SECONDS)

    @model_validator(mode="before")
    @classmethod
    def _take_old_name(cls, given: object) -> object:
        if isinstance(given, dict) and "queue_timeout" in given and "drain_timeout" not in given:
            warn("limits: write drain_timeout, not queue_timeout", DeprecationWarning, stacklevel=4)
            rest = dict(given)
            return {"drain_timeout": rest.pop("queue_timeout"), **rest}
        return given

    @field_validator("mark_query_records")
    @classmethod
    def _fits_in_flight(cls, value: int, info: ValidationInfo) -> int:
        most = info.data.get("max_in_flight_records", value)
        if value > most:
            raise ValueError(f"{value} is more than the {most} records that may be in flight")
        return value

    def suited_to(self, records: Records) -> Limits:
        """Return these limits, with `records` for those of the two that were not given."""
        given = self.model_dump(exclude_unset=True)
        most, marked = records
        given.setdefault("max_in_flight_records", max(most, given.get("mark_query_records", 0)))
        given.setdefault("mark_query_records", min(marked, given["max_in_flight_records"]))
        return Limits(**given)


class HarvestConfig(Checked):
    """All that a harvest must know."""

    outbox: str = DEFAULT_OUTBOX
    """table, or schema.table"""
    name: Name = Field(default_factory=lambda data: data["outbox"], validate_default=True)
    """the harvest's own name in the lease, in events and in Kafka; by default, its table"""
    base_kafka: KafkaConfig = Field(
        repr=False, description="librdkafka's settings for every client, bootstrap.servers at least"
    )
    producer_kafka: KafkaConfig = Field(default_factory=dict, repr=False)
    """more of them, for the producer"""
    leader_group: KafkaName = Field(
        default_factory=lambda data: group_of(data["name"]), validate_default=True
    )
    """the group of the candidates; by default, the name"""
    leader_topic: KafkaName = Field(
        default_factory=lambda data: f"{data['leader_group']}.neli", validate_default=True
    )
    """the topic by which the leader is elected, made if missing; by default, <leader_group>.neli"""
    postgres: SecretStr = Field(description="postgresql://..., or libpq's key=value pairs")
    delivery: Delivery = "exactly_once"
    """exactly_once, at_least_once or sequenced; a reaper.yaml that says none is at_least_once"""
    limits: Limits = Field(
        default_factory=lambda data: Limits().suited_to(RECORDS[data["delivery"]])
    )
    """how much, how often and how long: below"""
    marks: Marks = "claims"
    """claims, or rows, which writes leader_id into each row as goharvest does"""
    on_rejected: OnRejected = "hold_key"
    """hold_key, or skip: the key's later records do not wait for a parked one"""
    shards: Count = 1
    """how many leaders share the outbox, split by key"""
    retention: Period | None = None
    """how long purged records are kept in harvest.retained, as 24h; without it, not at all"""
    event_days: Count = 30
    """how many days the history is kept"""
    label: Name | None = None
    """names this process in the lease's holder; without it, host and process id"""
    metrics: str | None = None
    """[host:]port on which `harvest reap` serves its figures; on loopback unless a host is named"""

    @field_validator("outbox")
    @classmethod
    def _is_table(cls, value: str) -> str:
        try:
            return str(TableName.parse(value))
        except ConfigError:
            raise ValueError(
                "this is no table name: write table or schema.table, quoted where SQL needs it"
            ) from None

    @field_validator("postgres")
    @classmethod
    def _is_place(cls, value: SecretStr) -> SecretStr:
        try:
            return SecretStr(connection_string(value.get_secret_value()))
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("base_kafka")
    @classmethod
    def _names_brokers(cls, value: KafkaConfig) -> KafkaConfig:
        if not value.get("bootstrap.servers"):
            raise ValueError("it needs bootstrap.servers, as host:9092")
        return value

    @field_validator("limits")
    @classmethod
    def _suit_delivery(cls, value: Limits, info: ValidationInfo) -> Limits:
        delivery = info.data.get("delivery")
        return value.suited_to(_origin(info).records[delivery]) if delivery else value

    @field_validator("marks")
    @classmethod
    def _is_marked(cls, value: Marks, info: ValidationInfo) -> Marks:
        if value == "rows" and info.data.get("delivery") == "sequenced":
            raise ValueError("sequenced goes with claims, since goharvest knows nothing of clocks")
        return value

    @field_validator("metrics", mode="before")
    @classmethod
    def _is_address(cls, value: object) -> object:
        return None if value is None else whole_address(str(value))

    @field_serializer("base_kafka", "producer_kafka")
    def _masked(self, settings: KafkaConfig) -> KafkaConfig:
        return masked(settings)


def _origin(info: ValidationInfo) -> Origin:
    return info.context if isinstance(info.context, Origin) else Origin()
