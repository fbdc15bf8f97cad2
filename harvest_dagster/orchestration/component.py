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
from functools import partial
from typing import Annotated, Any, TypeAlias, get_origin

import dagster as dg
from dagster_shared.record import replace
from pydantic import Field
from pydantic.fields import FieldInfo

from harvest_dagster.orchestration.definitions import harvest_definitions
from harvest_dagster.orchestration.fields import FIELDS, values_for, with_fields
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


def _attribute_type(field: FieldInfo) -> Any:  # noqa: ANN401 - types of any form
    """Return what a `defs.yaml` has for a field; Dagster shows a resolver's description alone."""
    kind, said = field.annotation, field.description
    if get_origin(kind) is dict:
        read = dg.Resolver(_settings, model_field_type=dict[str, _Setting], description=said)
        return Annotated[dict[str, Any], read]
    if kind in (str, str | None):
        text = partial(dg.Resolver, model_field_type=str | None, inject_before_resolve=False)
        return Annotated[Any, text(_text, description=said)]
    return Annotated[kind, dg.Resolver.default(description=said)]


@with_fields(KafkaResource.model_fields, _attribute_type)
class KafkaAttributes(dg.Model, dg.Resolvable):
    """Where Kafka is."""


@with_fields({**OutboxResource.model_fields, **FIELDS}, _attribute_type)
class OutboxComponent(dg.Component, dg.Model, dg.Resolvable):
    """An outbox and its harvest: assets, checks, the sensor that leads, and the operator's jobs."""

    key: str = Field(default="harvest", description="what all its parts' names begin with")
    topics: list[str] = Field(default=[], description="the topics that it publishes to")
    upstream: list[str] = Field(
        default=[], description="the assets that stash into it, each as key or prefix/key"
    )
    running: bool = Field(
        default=False, description="whether the sensor is on without anybody's hand"
    )
    kafka: KafkaAttributes = Field(default_factory=KafkaAttributes, description="as KafkaResource")

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
        parts = {
            "outbox": OutboxResource(**values_for(OutboxResource, self)),
            "kafka": KafkaResource(**values_for(KafkaResource, self.kafka)),
            "neli": NeliResource(**values_for(NeliResource, self)),
        }
        return HarvestResource(**{**values_for(HarvestResource, self), **parts})


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
