"""Reads reader.yaml: what is read, and what is done with it, for the command line and Dagster.

    name: totals
    topics: [orders]
    upsert: {table: orders, key: id}

Beside the fields of a ReaderConfig it has `store`, the URL of another database than the lease's,
and either `statement` or `upsert` (see `into_table`). No error shows a value.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, SecretStr

from harvest_dagster.config import load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.reader.into_table import Upsert, by_statement, by_upsert
from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import Apply
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.readership import ReaderName, Readership

_INTO = ("statement", "upsert")


class ReaderOptions(BaseModel):
    """Which reader: all of it by its file, or one that a program runs by its name."""

    file: str | None = Field(
        default=None, description="reader.yaml: what is read, and what is done with it"
    )
    name: str | None = Field(
        default=None, description="the reader's name, to see or operate one without its file"
    )
    postgres: str = Field(default="", description="postgresql://... of the lease, and of the store")


def reader_of(options: ReaderOptions) -> Readership | ReaderName:
    """Return the reader that is meant."""
    if options.file is None:
        if options.name is None:
            raise ConfigError("which reader? give --file reader.yaml, or --name")
        return ReaderName(options.name, options.postgres, load_settings().kafka)
    try:
        return _readership(_read(options.file), options)
    except ConfigError as error:
        fault = str(error)
    raise ConfigError(f"{os.fspath(options.file)}: {fault}")


def _readership(given: dict[str, Any], options: ReaderOptions) -> Readership:
    if "postgres" in given:
        raise ConfigError("postgres: give it as HARVEST_POSTGRES; `store` may be another database")
    apply = _apply({word: given.pop(word) for word in _INTO if word in given})
    store = given.pop("store", None) or options.postgres
    if options.name is not None:
        given["name"] = options.name
    given.setdefault("kafka", load_settings().kafka)
    config = ReaderConfig(**given, postgres=SecretStr(options.postgres))
    return Readership(config, PostgresStore(str(store)), apply)


def _apply(into: dict[str, Any]) -> Apply:
    match into:
        case {"statement": str(statement), **rest} if not rest:
            return by_statement(statement)
        case {"upsert": dict(upsert), **rest} if not rest:
            return by_upsert(Upsert(**upsert))
    raise ConfigError("give what is done with a message: statement, or upsert: {table, key}")


def _read(path: str) -> dict[str, Any]:
    try:
        read = yaml.safe_load(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"it can't be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(f"{line}this is no YAML") from None
    except (yaml.YAMLError, ValueError):
        raise ConfigError("this is no YAML in UTF-8") from None
    if not isinstance(read, dict) or not all(isinstance(key, str) for key in read):
        raise ConfigError("it must have keys with values, as `name: totals`")
    return {key: value for key, value in read.items() if value is not None}
