"""A harvest without Python: a component for a `defs.yaml` of a project that has components.

    type: harvest_dagster.orchestration.OutboxComponent
    attributes:
      key: shop
      table: shop.outbox
      postgres: "{{ env.SHOP_POSTGRES }}"
      kafka:
        bootstrap_servers: broker-1:9092,broker-2:9092
        settings: {security.protocol: SASL_SSL, sasl.password: "{{ env.KAFKA_PASSWORD }}"}
      topics: [orders]
      upstream: [orders]
      running: true

Where an address, or a setting of Kafka's, is one variable of the environment and no more, Dagster
gets its name and not its value: so no page of the UI shows it, and each process reads its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from dagster_shared.record import replace
from pydantic import Field

from harvest_dagster.orchestration.definitions import harvest_definitions
from harvest_dagster.orchestration.resources import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)

_VARIABLE = re.compile(r"\s*\{\{\s*env(?:\.(\w+)|\(\s*['\"](\w+)['\"]\s*\))\s*\}\}\s*")
_Setting: TypeAlias = str | int | float | bool


def _text(context: dg.ResolutionContext, given: _Setting | None) -> Any:  # noqa: ANN401 - str, or an EnvVar
    if given is None:
        return None
    variable = _VARIABLE.fullmatch(str(given))
    if variable is not None:
        return dg.EnvVar(variable[1] or variable[2])
    # A text of digits comes out of a template as a number.
    found = context.resolve_value(given) if isinstance(given, str) and "{{" in given else given
    return str(found).lower() if isinstance(found, bool) else str(found)


def _settings(context: dg.ResolutionContext, given: Mapping[str, _Setting]) -> dict[str, Any]:
    return {key: _text(context, value) for key, value in given.items()}


Text: TypeAlias = Annotated[
    Any, dg.Resolver(_text, model_field_type=str | None, inject_before_resolve=False)
]
Settings: TypeAlias = Annotated[
    dict[str, Any], dg.Resolver(_settings, model_field_type=dict[str, str | int | float | bool])
]


class KafkaAttributes(dg.Model, dg.Resolvable):
    """Where Kafka is."""

    bootstrap_servers: Text = Field(
        default=None, description="host:9092,...; without it, the settings' own"
    )
    settings: Settings = Field(
        default={}, description="any other of librdkafka's settings, for every client"
    )
    producer_settings: Settings = Field(
        default={}, description="librdkafka's settings for the producer alone"
    )


class OutboxComponent(dg.Component, dg.Model, dg.Resolvable):
    """An outbox and its harvest: assets, checks, the sensor that leads, and the operator's jobs."""

    key: str = Field(default="harvest", description="what all its parts' names begin with")
    table: Text = Field(
        default=None, description="table or schema.table; without it, the settings' own"
    )
    postgres: Text = Field(
        default=None, description="postgresql://..., as {{ env.NAME }}; else the settings' own"
    )
    kafka: KafkaAttributes = Field(default_factory=KafkaAttributes, description="where Kafka is")
    name: Text = Field(
        default=None, description="what the harvest is called; without it, like its table"
    )
    leader_topic: Text = Field(default=None, description="without it, <name>.neli")
    leader_group: Text = Field(default=None, description="without it, <name>")
    shards: int = Field(default=1, description="how many leaders share the outbox's keys")
    heartbeat_timeout: Text = Field(
        default="5s", description="how long a leader may go without a proof, as 5s or 500ms"
    )
    delivery: Literal["exactly_once", "at_least_once"] = Field(
        default="exactly_once", description="exactly_once or at_least_once"
    )
    marks: Literal["claims", "rows"] = Field(
        default="claims", description="claims, or rows where goharvest reaps too"
    )
    on_rejected: Literal["hold_key", "skip"] = Field(
        default="hold_key", description="what a parked record does to its key: hold_key or skip"
    )
    retention: Text = Field(
        default=None, description="how long purged records are kept aside, as 24h; else not at all"
    )
    drain_timeout: Text = Field(
        default="10s", description="how long what is in flight may take to settle, at a hand-over"
    )
    max_in_flight_records: int | None = Field(default=None, description="what back-pressure allows")
    topics: list[str] = Field(default=[], description="the topics that it publishes to")
    upstream: list[str] = Field(
        default=[], description="the assets that stash into it, each as key or prefix/key"
    )
    running: bool = Field(
        default=False, description="whether the sensor is on without anybody's hand"
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Make what `harvest_definitions` makes."""
        return _without_topics_of_others(
            self._definitions(), str(context.defs_module_path), self.key
        )

    def _definitions(self) -> dg.Definitions:
        return harvest_definitions(
            self._harvest(),
            key=self.key,
            topics=self.topics,
            upstream=[dg.AssetKey.from_user_string(key) for key in self.upstream],
            running=self.running,
        )

    def _harvest(self) -> HarvestResource:
        kafka = self.kafka
        return HarvestResource(
            outbox=OutboxResource(postgres=self.postgres, table=self.table),
            kafka=KafkaResource(
                bootstrap_servers=kafka.bootstrap_servers,
                settings=kafka.settings,
                producer_settings=kafka.producer_settings,
            ),
            neli=NeliResource(
                name=self.name,
                leader_topic=self.leader_topic,
                leader_group=self.leader_group,
                shards=self.shards,
                heartbeat_timeout=self.heartbeat_timeout,
            ),
            delivery=self.delivery,
            marks=self.marks,
            on_rejected=self.on_rejected,
            retention=self.retention,
            drain_timeout=self.drain_timeout,
            max_in_flight_records=self.max_in_flight_records,
        )


_makers: dict[tuple[str, dg.AssetKey], str] = {}


def _without_topics_of_others(made: dg.Definitions, project: str, key: str) -> dg.Definitions:
    """Leave out the topics that another component of this project has made already.

    They are one object, but Dagster writes into each component's assets which file they are of.
    """
    assets = [
        asset
        for asset in made.assets or ()
        if not isinstance(asset, dg.AssetSpec)
        or _makers.setdefault((project, asset.key), key) == key
    ]
    return replace(made, assets=assets)
