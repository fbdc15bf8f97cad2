"""Configs that are frozen and validated, whose errors name a field and never show a value.

(pydantic's own errors show their input, so none of them gets out.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from harvest_dagster.errors import ConfigError
from harvest_dagster.text import printable

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


def group_of(name: str) -> str:
    """Return a name as Kafka takes it; names that would look alike get a digest each."""
    written = _NOT_OF_KAFKA_NAMES.sub("_", name)
    return written if written == name else f"{written}-{sha256(name.encode()).hexdigest()[:8]}"


Size = Annotated[int, BeforeValidator(_whole), Field(ge=0)]
Count = Annotated[Size, Field(ge=1)]
Name = Annotated[str, AfterValidator(_printable)]
KafkaName = Annotated[str, AfterValidator(_kafka_name)]


@dataclass(frozen=True)
class NamedFields:
    """What the fields of a config are called where it was read."""

    names: Mapping[str, str] = field(default_factory=dict)


class Checked(BaseModel):
    """A frozen model that refuses with a ConfigError; `context` may be NamedFields."""

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
            names = info.context.names if isinstance(info.context, NamedFields) else {}
            fault = _faults(error, cls, names)
        # Outside of the except, so that not even the error's context has the values.
        raise ConfigError(fault)


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
