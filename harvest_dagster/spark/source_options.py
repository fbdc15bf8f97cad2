"""The options of `format("outbox")`, checked when a query is planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import ClassVar, Literal, Self
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harvest_dagster.config import load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.once import OnRepeat, Request
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.text import printable

ATTACH_FROM = 100_000


class SourceOptions(BaseModel):
    """What may stand in `.option(...)`; Spark does not tell upper from lower case."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", alias_generator=str.lower, hide_input_in_errors=True
    )

    url: str | None = Field(None, description="postgresql://...; else as the settings have it")
    outbox: str | None = Field(None, description="the outbox's table; else the settings' own")
    topic: str | None = Field(None, description="the topic of messages that name none")
    orderBy: tuple[str, ...] = Field((), description="columns, in whose order messages are stashed")  # noqa: N815
    key: str | None = Field(None, min_length=1, description="what is written once, whoever tries")
    onRepeat: OnRepeat = Field("skip", description="skip, again or error")  # noqa: N815
    maxMessageBytes: int | None = Field(None, gt=0, description="the largest that topics take")  # noqa: N815
    attachFrom: int = Field(  # noqa: N815
        ATTACH_FROM, gt=0, description="how many messages are attached to the outbox, and not moved"
    )
    table: Literal["outbox", "parked"] = Field("outbox", description="what is read")
    partitions: int = Field(4, gt=0, description="how many tasks read")
    # Only a transaction uses these, to have its rows and messages staged.
    stage: Literal["messages", "rows"] = Field("messages", description="messages or rows")
    write: UUID | None = Field(None, description="the transaction's id")
    into: str | None = Field(
        None, pattern="^[0-9a-f_]{1,63}$", description="a staging table's name"
    )
    asJson: tuple[str, ...] = Field((), description="a list in JSON, of columns that become JSON")  # noqa: N815

    @field_validator("orderBy", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("asJson", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return tuple(json.loads(value)) if isinstance(value, str) else value

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Read the options that Spark was given; raise a ConfigError that names what is wrong."""
        ours = {key.lower(): value for key, value in given.items()}
        for name in _SPARKS_OWN & ours.keys():
            del ours[name]
        _refuse_unknown(ours)
        try:
            return cls.model_validate(ours)
        except ValidationError as error:
            raise ConfigError("; ".join(map(_fault, error.errors(include_input=False)))) from None

    def postgres(self) -> str:
        """Return the URL of PostgreSQL, with the password; never print it."""
        return load_settings(postgres=self.url).postgres_url()

    def request(self) -> Request:
        """Return the request to commit a write, a new one if the options name none."""
        write = self.write or uuid4()
        return Request(write, self.key, self.outbox_table().table, self.onRepeat)

    def outbox_table(self) -> Outbox:
        """Return the outbox."""
        settings = load_settings(outbox=self.outbox, max_message_bytes=self.maxMessageBytes)
        return Outbox.named(settings.outbox, max_message_bytes=settings.max_message_bytes)


_NAMES = {name.lower(): name for name in SourceOptions.model_fields}
_SPARKS_OWN = {"path", "checkpointlocation", "queryname"}


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for key in given:
        if key not in _NAMES:
            nearest = get_close_matches(key, _NAMES, n=1, cutoff=0)[0]
            raise ConfigError(f"{printable(key)}: no such option; the nearest is {_NAMES[nearest]}")


def _fault(error: object) -> str:
    place, message = error["loc"][0], error["msg"]  # type: ignore[index] # pydantic's ErrorDetails
    name = _NAMES[str(place).lower()]
    return f"{name}: {message}; give {SourceOptions.model_fields[name].description}"
