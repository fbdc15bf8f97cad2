"""The fields of a harvest's config as Dagster has them.

The resources and the component take them from here, and so from `HarvestConfig` and `Limits`: a
field that is added there is added in Dagster too. A duration is text here, as 5s, because a field
must be text to be an `EnvVar`; the config reads and checks it. A field whose default follows from
another one is None until it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel, BeforeValidator, create_model
from pydantic.fields import FieldInfo

from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.work.durations import format_duration

Made = TypeVar("Made", bound=BaseModel)

_NOT_HERE = {"outbox", "postgres", "base_kafka", "producer_kafka", "limits", "metrics"}
"""Resources of their own have the places, each limit is a field, `harvest reap` serves figures."""
_DEFAULTS = {"drain_timeout": 10.0}
"""The job that has a leader resign waits 15 s for the next one."""


def of_dagster(name: str, field: FieldInfo) -> FieldInfo:
    """Return a field of a config as a field of a resource."""
    default = None if field.default_factory else _DEFAULTS.get(name, field.default)
    is_kept = _is_kept(field)
    shown = default if is_kept or not isinstance(default, float) else format_duration(default)
    kind: Any = field.annotation if is_kept else str
    kind = kind | None if shown is None else kind
    return FieldInfo(annotation=kind, default=shown, description=field.description)


def _is_kept(field: FieldInfo) -> bool:
    kind = field.annotation
    is_duration = any(isinstance(rule, BeforeValidator) for rule in field.metadata)
    is_number = kind in (int, bool) or (kind is float and not is_duration)
    return is_number or get_origin(kind) in (Literal, list, dict)


def config_type(field: FieldInfo) -> Any:  # noqa: ANN401 - types of any form
    """Return what a resource has for a field: text for a choice, so that it may be an `EnvVar`."""
    return str if get_origin(field.annotation) is Literal else field.annotation


FIELDS = {
    name: of_dagster(name, field)
    for model in (HarvestConfig, Limits)
    for name, field in model.model_fields.items()
    if name not in _NOT_HERE
}


def with_fields(
    fields: Mapping[str, FieldInfo], kind: Callable[[FieldInfo], Any]
) -> Callable[[type[Made]], type[Made]]:
    """Return a decorator that adds fields to a class, each of the type that `kind` returns.

    No type checker sees them, so the class refuses a name that is none of its fields'.
    """
    strict = {"extra": "forbid", "hide_input_in_errors": True}

    def decorate(made: type[Made]) -> type[Made]:
        added: dict[str, Any] = {name: (kind(field), field) for name, field in fields.items()}
        anew = create_model(
            made.__name__,
            __base__=made,
            __module__=made.__module__,
            __cls_kwargs__=strict,
            **added,
        )
        anew.__doc__ = made.__doc__
        return anew

    return decorate


def values_for(model: type[BaseModel], *those: BaseModel) -> dict[str, Any]:
    """Return what those have for the fields of a model, but for what is None."""
    found = {name: value for one in those for name, value in one if name in model.model_fields}
    return {name: value for name, value in found.items() if value is not None}
