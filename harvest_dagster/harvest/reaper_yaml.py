r"""Reads reaper.yaml, goharvest's and ours: every key of goharvest's, with its meaning and default.

`${NAME}` in a value stands for that variable of the environment, so that no secret need be in the
file; `$${` is a literal `${`. A key with nothing behind it counts as not given. Where dataSource,
outboxTable or bootstrap.servers is not given, it is looked for where all of harvest_dagster's
settings are.

The file is read as YAML's nodes rather than as values: a node knows its line, and has its text as
it was written, so that a name of 007 stays 007. Errors name the keys, and never what they have.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic.alias_generators import to_camel

from harvest_dagster.config import KafkaConfig, load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.config import RECORDS, HarvestConfig, Limits, Origin
from harvest_dagster.harvest.goharvest_limits import GoharvestLimits

TRACE = 5
"""The level below DEBUG, for which Python has no name."""

_LEVELS = {
    "all": logging.NOTSET + 1,
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_RECORDS = {**RECORDS, "at_least_once": (1_000, 100)}
"""goharvest's own delivery has goharvest's own limits."""

_SECTIONS = {"harvest", "harvest.limits", "logging"}
_TABLES = {"harvest.baseKafkaConfig", "harvest.producerKafkaConfig"}
NAMES = {
    **{field: f"harvest.{to_camel(field)}" for field in HarvestConfig.model_fields},
    **{field: f"harvest.limits.{to_camel(field)}" for field in GoharvestLimits.model_fields},
    # goharvest's name tells one process from another; ours is that of all that harvest a table.
    "label": "harvest.name",
    "name": "harvest.harvestName",
    "base_kafka": "harvest.baseKafkaConfig",
    "producer_kafka": "harvest.producerKafkaConfig",
    "leader_group": "harvest.leaderGroupID",
    "postgres": "harvest.dataSource",
    "outbox": "harvest.outboxTable",
    "level": "logging.level",
}
"""The key of each field."""
_FIELDS = {
    **{name: field for field, name in NAMES.items() if name not in _SECTIONS},
    "harvest.limits.queueTimeout": "drain_timeout",  # as goharvest calls it
}
_LOWER = {name.lower(): name for name in _FIELDS.keys() | _SECTIONS}

_TAG = "tag:yaml.org,2002:"
_NULL = f"{_TAG}null"
_TYPED = {f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float"}
_QUOTE = re.compile(r"'([^']*)'")
_NO_SECRET = re.compile(r"<[a-z ]+>|\W{1,2}")
"""In PyYAML's messages, the name of a token, and the marks of YAML's own."""

_VARIABLE = re.compile(r"\$\$(?=\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{")


class Reaper(NamedTuple):
    """What a reaper.yaml says."""

    harvest: HarvestConfig
    level: int
    """As `logging` counts them."""


class _Entry(NamedTuple):
    """A key with what it has."""

    name: str
    line: int
    node: yaml.Node

    @property
    def place(self) -> str:
        """Where it is, for an error."""
        return f"{self.name} (line {self.line})" if self.name else "the file"


def load_reaper_yaml(path: str | os.PathLike[str]) -> Reaper:
    """Read a reaper.yaml; whatever is wrong with it is a ConfigError of one line."""
    try:
        return _reaper(_root(_read(Path(path))))
    except ConfigError as error:
        fault = str(error)
    raise ConfigError(f"{os.fspath(path)}: {fault}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"it can't be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError("it can't be read: it is no text in UTF-8") from None


def _root(text: str) -> _Entry:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_without_quotes(error)) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise ConfigError("it has characters that YAML forbids, or nests too deep") from None
    if node is None or node.tag == _NULL:
        raise ConfigError("it is empty")
    return _Entry("", 1, node)


def _without_quotes(error: yaml.MarkedYAMLError) -> str:
    """Say what PyYAML says, without what it quotes of the file."""
    problem = (error.problem or "this is no YAML").removeprefix("but ")
    said = "there is a tab: indent with spaces" if r"\t" in problem else problem
    unquoted = _QUOTE.sub(lambda quote: quote[0] if _NO_SECRET.fullmatch(quote[1]) else "...", said)
    return f"line {error.problem_mark.line + 1}: {unquoted}" if error.problem_mark else unquoted


def _reaper(root: _Entry) -> Reaper:
    names = dict(NAMES)
    limits: dict[str, Any] = {}
    fields: dict[str, Any] = {"delivery": "at_least_once", "limits": limits}
    for entry in _leaves(root):
        field = _FIELDS[entry.name]
        value = _table(entry) if entry.name in _TABLES else _text(entry)
        if value is not None:
            if field in limits:
                raise ConfigError(f"{entry.place}: it is {names[field]} too; give one of the two")
            names[field] = entry.place
            (limits if field in GoharvestLimits.model_fields else fields)[field] = value
    level = _level(fields.pop("level", "debug"), names["level"])
    _add_settings(fields)
    origin = Origin(names, _RECORDS)
    checked = GoharvestLimits.model_validate(limits, context=origin)
    fields["limits"] = checked.model_dump(include=set(Limits.model_fields), exclude_unset=True)
    return Reaper(HarvestConfig.model_validate(fields, context=origin), level)


def _leaves(section: _Entry) -> Iterator[_Entry]:
    for entry in _entries(section):
        if entry.name in _SECTIONS:
            yield from _leaves(entry)
        elif entry.name in _FIELDS:
            yield entry
        else:
            nearest = get_close_matches(entry.name.lower(), _LOWER, n=1, cutoff=0)[0]
            raise ConfigError(f"{entry.place}: no such key; the nearest is {_LOWER[nearest]}")


def _entries(section: _Entry) -> Iterator[_Entry]:
    if section.node.tag == _NULL:
        return
    if not isinstance(section.node, yaml.MappingNode):
        raise ConfigError(f"{section.place}: it must be a mapping, of lines as `key: value`")
    prefix = f"{section.name}." if section.name else ""
    lines: dict[str, int] = {}
    for key, _ in section.node.value:
        entry = _Entry(prefix + _key(key), key.start_mark.line + 1, key)
        if entry.name in lines:
            raise ConfigError(f"{entry.place}: it is in line {lines[entry.name]} already")
        lines[entry.name] = entry.line
    for key, value in _merged(section.node):
        yield _Entry(prefix + _key(key), key.start_mark.line + 1, value)


def _key(node: yaml.Node) -> str:
    text = node.value if isinstance(node, yaml.ScalarNode) else "?"
    return text if text.isprintable() else ascii(text)


def _merged(mapping: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    """List the pairs with those that `<<` merges in, where a mapping's own go before them."""
    try:
        yaml.SafeLoader("").flatten_mapping(mapping)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_without_quotes(error)) from None
    return list({_key(key): (key, value) for key, value in mapping.value}.values())


def _text(entry: _Entry) -> str | None:
    if not isinstance(entry.node, yaml.ScalarNode):
        raise ConfigError(f"{entry.place}: it must be one value, and no list or mapping")
    if entry.node.tag == _NULL or not entry.node.value:
        return None
    return _expanded(entry)


def _table(section: _Entry) -> KafkaConfig:
    """Read librdkafka's settings, of the types that YAML sees in them."""
    settings = {}
    for entry in _entries(section):
        value = _typed(entry) if entry.node.tag in _TYPED else _text(entry)
        if value is not None:
            settings[entry.name.removeprefix(f"{section.name}.")] = value
    return settings


def _typed(entry: _Entry) -> str | int | float | bool:
    try:
        value: str | int | float | bool = yaml.SafeLoader("").construct_object(entry.node)
    except (yaml.YAMLError, ValueError, LookupError):
        raise ConfigError(f"{entry.place}: it is not of the type that its tag says") from None
    return value


def _expanded(entry: _Entry) -> str:
    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if match[0] == "$$":
            return "$"
        if name is None:
            raise ConfigError(f"{entry.place}: write ${{NAME}} for a variable, $${{ for ${{")
        if name not in os.environ:
            raise ConfigError(f"{entry.place}: the environment has no variable {name}")
        return os.environ[name]

    return _VARIABLE.sub(value, entry.node.value)


def _level(name: str, place: str) -> int:
    if name.lower() not in _LEVELS:
        raise ConfigError(f"{place}: it must be one of {', '.join(map(str.title, _LEVELS))}")
    return _LEVELS[name.lower()]


def _add_settings(fields: dict[str, Any]) -> None:
    """Look for what is not given where `harvest dev up`, among others, leaves it."""
    if "outbox" not in fields:
        fields["outbox"] = load_settings().outbox
    if "postgres" not in fields:
        try:
            fields["postgres"] = load_settings().postgres_url()
        except ConfigError as error:
            raise ConfigError(f"harvest.dataSource is not given, and {error}") from None
    kafka = fields.get("base_kafka", {})
    if "bootstrap.servers" not in kafka:
        try:
            fields["base_kafka"] = load_settings().kafka_config() | kafka
        except ConfigError as error:
            name = "harvest.baseKafkaConfig.bootstrap.servers"
            raise ConfigError(f"{name} is not given, and {error}") from None
