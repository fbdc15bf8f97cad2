"""The configuration of a harvest, frozen and validated.

A value is never shown: neither by the repr, the str or a dump of a config that has secrets, nor
by the `ConfigError` that says which field is wrong and what may stand there. (pydantic's own
errors show their input, so none of them gets out.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, ClassVar, Literal, Self, TypeAlias
from warnings import warn

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from harvest_dagster.config import DEFAULT_OUTBOX, KafkaConfig
from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.durations import Pause, Period
from harvest_dagster.kafka.settings import masked
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import printable
from harvest_dagster.work.address import whole_address

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
_NAME_LENGTH = 200
"""Less than Kafka's, for what is put behind a name."""
_KAFKA_NAME_LENGTH = 249

_NOT_OF_KAFKA_NAMES = re.compile(r"[^a-zA-Z0-9._-]")


def _whole(given: object) -> object:
    if isinstance(given, bool):
        raise ValueError("it must be a whole number")  # noqa: TRY004 - pydantic wants a ValueError
    return given


def _printable(name: str) -> str:
    if not name.isprintable() or not 1 <= len(name) <= _NAME_LENGTH:
        raise ValueError(f"it must be of 1 to {_NAME_LENGTH} printable characters")
    return name


def _kafka_name(name: str) -> str:
    is_long = len(name) > _KAFKA_NAME_LENGTH
    if is_long or name in ("", ".", "..") or _NOT_OF_KAFKA_NAMES.search(name):
        raise ValueError(
            f"it must be of 1 to {_KAFKA_NAME_LENGTH} letters, digits, '.', '_' and '-'"
        )
    return name


def _group_of(name: str) -> str:
    """Return a name as Kafka takes it; names that would look alike get a digest each."""
    written = _NOT_OF_KAFKA_NAMES.sub("_", name)
    return written if written == name else f"{written}-{sha256(name.encode()).hexdigest()[:8]}"


Size = Annotated[int, BeforeValidator(_whole), Field(ge=0)]
Count = Annotated[Size, Field(ge=1)]
Name = Annotated[str, AfterValidator(_printable)]
KafkaName = Annotated[str, AfterValidator(_kafka_name)]


@dataclass(frozen=True)
class Origin:
    """Where a config was read: what its fields are called there, and what they are by default."""

    names: Mapping[str, str]
    records: Mapping[Delivery, Records]


class _Checked(BaseModel):
    """A frozen model that refuses with a ConfigError; `context` may be an Origin."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    def __setattr__(self, name: str, value: object) -> None:
        # pydantic would refuse it too, and show the value.
        raise ConfigError(f"{name}: a config does not change; make another")

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_without_values(
        cls, given: object, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            fault = _faults(error, cls, _origin(info).names)
        # Outside of the except, so that not even the error's context has the values.
        raise ConfigError(fault)


class Limits(_Checked):
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


class HarvestConfig(_Checked):
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
        default_factory=lambda data: _group_of(data["name"]), validate_default=True
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
    return info.context if isinstance(info.context, Origin) else Origin({}, RECORDS)


def _faults(error: ValidationError, model: type[BaseModel], names: Mapping[str, str]) -> str:
    """Return each fault as its field and what may stand there; never the value."""
    told = {}
    for fault in error.errors(include_input=False, include_context=False, include_url=False):
        field, *inner = map(str, fault["loc"] or (model.__name__,))
        said = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            said = f"no such setting; there are {', '.join(model.model_fields)}"
        elif inner:  # the one field that has values of its own is a table of Kafka's settings
            said = f"{printable(inner[0])} must be text, a number, true or false"
        elif fault["type"] == "missing":
            said = f"it is missing; give {model.model_fields[field].description}"
        if fault["type"] != "default_factory_not_called":
            shown = printable(names.get(field, field))
            told[field, *inner[:1]] = f"{shown}: {said}"
    return "; ".join(told.values())
