"""Where PostgreSQL and Kafka are: the one place that reads the environment.

Of several places that name a setting, the first wins:

1. the argument (a command's option),
2. the environment: `HARVEST_POSTGRES`, `HARVEST_KAFKA`, `HARVEST_OUTBOX`,
   `HARVEST_MAX_MESSAGE_BYTES`, `HARVEST_HOME`,
3. `harvest.toml` of the working directory,
4. `servers.json` of the home, which `harvest dev up` writes for as long as its servers run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    JsonConfigSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from harvest_dagster.errors import ConfigError
from harvest_dagster.text import one_line, printable

PROJECT_FILE = Path("harvest.toml")
SERVERS_FILE = "servers.json"
DEFAULT_HOME = Path(".harvest")
DEFAULT_OUTBOX = "outbox"
KAFKA_MESSAGE_BYTES = 1_048_588
"""Kafka's default for max.message.bytes."""

KafkaConfig = dict[str, str | int | float | bool]


class Settings(BaseSettings):
    """The settings of this process, frozen; make them with `load_settings`."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix="HARVEST_",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
    )

    postgres: SecretStr | None = Field(
        None, description="postgresql://user:password@host:5432/database"
    )
    kafka: Annotated[KafkaConfig, NoDecode] = Field(
        default_factory=dict,
        description="bootstrap addresses, or a table of librdkafka settings",
        repr=False,
    )
    outbox: str = Field(DEFAULT_OUTBOX, description="the outbox's table, with its schema if any")
    max_message_bytes: int = Field(
        KAFKA_MESSAGE_BYTES, gt=0, description="the largest message that the topics take"
    )
    home: Path = Field(DEFAULT_HOME, description="where the embedded servers keep their state")

    @field_validator("postgres")
    @classmethod
    def _is_postgres_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _is_url(value.get_secret_value()):
            raise ValueError(
                "this is no URL of PostgreSQL; in a password, write @ as %40, / as %2F, % as %25"
            )
        return value

    @field_validator("kafka", mode="before")
    @classmethod
    def _addresses_or_table(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("{"):
            return json.loads(value)
        return {"bootstrap.servers": value}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic names the arguments
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources as the module says."""
        project = _read(PROJECT_FILE, partial(TomlConfigSettingsSource, settings_cls))
        named = {**project, **env_settings(), **init_settings()}
        servers_file = Path(str(named.get("home", DEFAULT_HOME))) / SERVERS_FILE
        servers = _read(servers_file, partial(JsonConfigSettingsSource, settings_cls))
        # As one source: of several, pydantic would merge one Kafka's settings into another's.
        return (InitSettingsSource(settings_cls, {**servers, **named}),)

    def postgres_url(self) -> str:
        """Return the URL of PostgreSQL, with its password; never print it."""
        if self.postgres is None:
            raise ConfigError(
                "no PostgreSQL is configured: set HARVEST_POSTGRES=postgresql://..., or `postgres`"
                " in harvest.toml, or start one on this machine with `harvest dev up`"
            )
        return self.postgres.get_secret_value()

    def sqlalchemy_url(self) -> str:
        """Return the same URL as SQLAlchemy wants it, for psycopg 3; never print it."""
        return "postgresql+psycopg://" + self.postgres_url().partition("://")[2]

    def kafka_config(self) -> KafkaConfig:
        """Return the settings of every Kafka client; never print them."""
        if not self.kafka.get("bootstrap.servers"):
            raise ConfigError(
                "no Kafka is configured: set HARVEST_KAFKA=host:9092, or `kafka` in harvest.toml,"
                " or start one on this machine with `harvest dev up`"
            )
        return dict(self.kafka)


def load_settings(**given: Any) -> Settings:  # noqa: ANN401 - each value is validated by its field
    """Read the settings from all their places; a `given` that is None counts as not given."""
    try:
        return Settings(**{key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        raise ConfigError("; ".join(map(_fault, error.errors(include_input=False)))) from None


def names_own_servers() -> bool:
    """Return whether PostgreSQL is named by its user, and not just by `harvest dev up`."""
    return load_settings(home=Path(os.devnull)).postgres is not None


def _read(
    file: Path,
    source: Callable[[Path], TomlConfigSettingsSource] | Callable[[Path], JsonConfigSettingsSource],
) -> dict[str, Any]:
    try:
        return source(file)()
    except (OSError, ValueError, TypeError, RuntimeError) as error:  # one for a ~user who is none
        raise ConfigError(f"{printable(str(file))} can't be read: {one_line(error)}") from None


def _is_url(text: str) -> bool:
    """Return whether libpq would find host and port in it; if not, its errors quote passwords."""
    if not text.startswith(("postgresql://", "postgres://")):
        return False
    try:
        parts = conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        return False
    ports = str(parts.get("port", "")).replace(",", "")
    return "@" not in str(parts.get("host", "")) and (not ports or ports.isdecimal())


def _fault(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    key = printable(str(error["loc"][0])) if error["loc"] else "settings"
    if error["type"] == "extra_forbidden":
        return f"{key}: no such setting; there are {', '.join(Settings.model_fields)}"
    field = Settings.model_fields.get(key)
    wanted = f"; give {field.description}" if field and field.description else ""
    return f"{key}: {error['msg'].removeprefix('Value error, ')}{wanted}"
