"""What Dagster's GraphQL answers, as values that tests compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_VALUES: dict[str, Callable[[Any], Any]] = {
    "IntMetadataEntry": lambda entry: int(entry["intRepr"]),
    "FloatMetadataEntry": lambda entry: entry["floatValue"],
    "TextMetadataEntry": lambda entry: entry["text"],
    "BoolMetadataEntry": lambda entry: entry["boolValue"],
    "TimestampMetadataEntry": lambda entry: entry["timestamp"],
    "JsonMetadataEntry": lambda entry: json.loads(entry["jsonString"]),
    "UrlMetadataEntry": lambda entry: entry["url"],
    "MarkdownMetadataEntry": lambda entry: entry["mdStr"],
    "PathMetadataEntry": lambda entry: entry["path"],
    "TableMetadataEntry": lambda entry: [*map(json.loads, entry["table"]["records"])],
}


@dataclass(frozen=True)
class Tick:
    """One tick of a sensor; `said` is its skip reason, or its error."""

    id: str
    status: str
    at: float
    seconds: float | None
    said: str | None
    run_ids: tuple[str, ...]
    run_keys: tuple[str, ...]
    cursor: str | None


@dataclass(frozen=True)
class Run:
    """One run."""

    id: str
    job: str
    status: str
    created: float
    started: float | None
    ended: float | None
    tags: dict[str, str]


@dataclass(frozen=True)
class LogLine:
    """One event of a run; `kind` is GraphQL's name of it, `error` what an op failed of."""

    kind: str
    level: str
    step: str | None
    message: str
    error: str | None


@dataclass(frozen=True)
class Asset:
    """An asset as it is defined."""

    key: str
    group: str
    description: str | None
    kinds: tuple[str, ...]
    owners: tuple[str, ...]
    upstream: tuple[str, ...]


@dataclass(frozen=True)
class AssetEvent:
    """A materialization or an observation, and what was told with it."""

    kind: str
    at: float
    run_id: str
    partition: str | None
    description: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Check:
    """The newest outcome of an asset check; without one `status` is None."""

    status: str | None
    passed: bool | None
    severity: str | None
    at: float | None
    description: str | None
    metadata: dict[str, Any]


def tick(found: dict[str, Any]) -> Tick:
    """Read a tick."""
    error, ended = found["error"], found["endTimestamp"]
    return Tick(
        found["tickId"],
        found["status"],
        found["timestamp"],
        ended - found["timestamp"] if ended else None,
        error["message"] if error else found["skipReason"],
        tuple(found["runIds"]),
        tuple(found["runKeys"]),
        found["cursor"],
    )


def run(found: dict[str, Any]) -> Run:
    """Read a run."""
    return Run(
        found["runId"],
        found["jobName"],
        found["status"],
        found["creationTime"],
        found["startTime"],
        found["endTime"],
        {tag["key"]: tag["value"] for tag in found["tags"]},
    )


def log_line(found: dict[str, Any]) -> LogLine:
    """Read an event of a run."""
    error = found.get("error")
    return LogLine(
        found["__typename"],
        found["level"],
        found["stepKey"],
        found["message"],
        reason(error) if error else None,
    )


def asset(found: dict[str, Any]) -> Asset:
    """Read an asset's definition."""
    return Asset(
        _key(found["assetKey"]),
        found["groupName"],
        found["description"],
        tuple(sorted(found["kinds"])),
        tuple(str(next(iter(owner.values()))) for owner in found["owners"]),
        tuple(map(_key, found["dependencyKeys"])),
    )


def asset_event(found: dict[str, Any]) -> AssetEvent:
    """Read a materialization or an observation."""
    return AssetEvent(
        found["__typename"].removesuffix("Event").lower(),
        int(found["timestamp"]) / 1000,
        found["runId"],
        found["partition"],
        found["description"],
        metadata(found["metadataEntries"]),
    )


def check(found: dict[str, Any]) -> Check:
    """Read an asset check's newest outcome."""
    execution = found["executionForLatestMaterialization"] or {}
    evaluation = execution.get("evaluation") or {}
    return Check(
        execution.get("status"),
        evaluation.get("success"),
        evaluation.get("severity"),
        execution.get("timestamp"),
        evaluation.get("description"),
        metadata(evaluation.get("metadataEntries", ())),
    )


def metadata(entries: Any) -> dict[str, Any]:
    """Read metadata by label; kinds that tests have no use for are None."""
    return {entry["label"]: _value(entry) for entry in entries}


def _value(entry: dict[str, Any]) -> Any:
    read = _VALUES.get(entry["__typename"])
    return read(entry) if read else None


def reason(error: dict[str, Any]) -> str:
    """Tell an error of Python's with its causes."""
    return "\n".join(one["message"].strip() for one in (error, *error["causes"]))


def _key(found: dict[str, Any]) -> str:
    return "/".join(found["path"])
