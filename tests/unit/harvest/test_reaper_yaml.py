from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.reaper_yaml import TRACE, Reaper, load_reaper_yaml
from harvest_dagster.work.durations import format_duration

README = """\
harvest:
  baseKafkaConfig:\x20
    bootstrap.servers: localhost:9092
  producerKafkaConfig:
    compression.type: lz4
    delivery.timeout.ms: 10000
  leaderTopic: my-app-name
  leaderGroupID: my-app-name
  dataSource: host=localhost port=5432 user=postgres password= dbname=postgres sslmode=disable
  outboxTable: outbox
  limits:
    minPollInterval: 1s
    heartbeatTimeout: 5s
    maxInFlightRecords: 1000
    minMetricsInterval: 5s
    sendConcurrency: 4
    sendBuffer: 10
logging:
  level: Debug
"""
LEAST = """\
harvest:
  baseKafkaConfig: {bootstrap.servers: "localhost:9092"}
  dataSource: host=localhost
"""


def load(text: str) -> Reaper:
    """Read a reaper.yaml of this text."""
    Path("reaper.yaml").write_text(text, encoding="utf-8")
    return load_reaper_yaml("reaper.yaml")


def load_with(line: str) -> HarvestConfig:
    """Read a reaper.yaml of the least there must be, and a line more."""
    return load(f"{LEAST}  {line}\n").harvest


def test_readme() -> None:
    """The example of goharvest's README means what it means to goharvest."""
    harvest, level = load(README)
    assert level == logging.DEBUG
    assert harvest.postgres.get_secret_value() == (
        "host=localhost port=5432 user=postgres password='' dbname=postgres sslmode=disable"
    )
    assert harvest.model_dump(exclude={"postgres"}) == {
        "outbox": "outbox",
        "name": "outbox",
        "base_kafka": {"bootstrap.servers": "localhost:9092"},
        "producer_kafka": {"compression.type": "lz4", "delivery.timeout.ms": 10000},
        "leader_group": "my-app-name",
        "leader_topic": "my-app-name",
        "delivery": "at_least_once",
        "limits": {
            "io_error_backoff": 0.5,
            "heartbeat_timeout": 5,
            "drain_timeout": 30,
            "max_in_flight_records": 1000,
            "max_in_flight_bytes": 32 * 1024 * 1024,
            "mark_query_records": 100,
            "min_metrics_interval": 5,
        },
        "marks": "claims",
        "on_rejected": "hold_key",
        "shards": 1,
        "retention": None,
        "event_days": 30,
        "label": None,
        "metrics": None,
    }


@pytest.mark.parametrize("text", [LEAST, f"{LEAST}  limits:\nlogging:\n", f"\ufeff{LEAST}"])
def test_defaults(text: str) -> None:
    """What is not given, or has nothing behind it, is as goharvest has it."""
    harvest, level = load(text)
    assert level == logging.DEBUG
    assert harvest == HarvestConfig(
        base_kafka={"bootstrap.servers": "localhost:9092"},
        postgres="host=localhost",  # type: ignore[arg-type]
        delivery="at_least_once",
        limits=Limits(max_in_flight_records=1_000, mark_query_records=100),
    )


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("name: 007", "label", "007"),
        ("harvestName: 007", "name", "007"),
        ("name: yes", "label", "yes"),
        ("name: ~", "label", None),
        ("name: reaper-1", "name", "outbox"),
        ('harvestName: ""', "name", "outbox"),
        ("leaderTopic: t", "leader_topic", "t"),
        ("leaderGroupID: g", "leader_topic", "g.neli"),
        ("outboxTable: Shop.Outbox", "outbox", "shop.outbox"),
        ("delivery: exactly_once", "delivery", "exactly_once"),
        ("marks: rows", "marks", "rows"),
        ("onRejected: skip", "on_rejected", "skip"),
        ("shards: 4", "shards", 4),
        ('shards: "4"', "shards", 4),
        ("retention: 720h", "retention", 30 * 24 * 3600),
        ("eventDays: 7", "event_days", 7),
        ("metrics: 9100", "metrics", "127.0.0.1:9100"),
    ],
)
def test_keys(line: str, field: str, value: object) -> None:
    """Each key of a harvest is read into its field, by its text."""
    assert getattr(load_with(line), field) == value


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("ioErrorBackoff: 1m", "io_error_backoff", 60),
        ("heartbeatTimeout: 40s", "heartbeat_timeout", 40),
        ("drainTimeout: 1s", "drain_timeout", 1),
        ("queueTimeout: 1s", "drain_timeout", 1),
        ("queueTimeout: 1s, drainTimeout: ~", "drain_timeout", 1),
        ("maxInFlightRecords: 60", "max_in_flight_records", 60),
        ("maxInFlightRecords: 60", "mark_query_records", 60),
        ("maxInFlightBytes: 1", "max_in_flight_bytes", 1),
        ("markQueryRecords: 70", "mark_query_records", 70),
        ("minMetricsInterval: 90ms", "min_metrics_interval", 0.09),
    ],
)
def test_limits(line: str, field: str, value: float) -> None:
    """Each limit is read into its field."""
    assert getattr(load_with(f"limits: {{{line}}}").limits, field) == value


@pytest.mark.parametrize(
    "line",
    [
        *("pollDuration: 20ms", "minPollInterval: 30ms", "maxPollInterval: 4s"),
        *("drainInterval: 32ms", "markBackoff: 0", "sendConcurrency: 70", "sendBuffer: 0"),
    ],
)
def test_limits_without_effect(line: str) -> None:
    """What goharvest's other limits are about is done in another way: they change nothing."""
    assert load_with(f"limits: {{{line}}}") == load(LEAST).harvest


@pytest.mark.parametrize(
    ("limits", "in_flight", "marked"),
    [
        ("{}", 1_000, 100),
        ("{maxInFlightRecords: 60}", 60, 60),
        ("{maxInFlightRecords: 20000}", 20_000, 100),
        ("{markQueryRecords: 5000}", 5_000, 5_000),
    ],
)
def test_limits_of_goharvest(limits: str, in_flight: int, marked: int) -> None:
    """At least once, goharvest's limits are the default, whatever ours are elsewhere."""
    for delivery in ("", "delivery: at_least_once\n  "):
        made = load_with(f"{delivery}limits: {limits}").limits
        assert (made.max_in_flight_records, made.mark_query_records) == (in_flight, marked)


def test_exactly_once_brings_its_limits() -> None:
    """A reaper.yaml that asks for exactly once has its limits too."""
    limits = load_with("delivery: exactly_once").limits
    assert (limits.max_in_flight_records, limits.mark_query_records) == (20_000, 5_000)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("All", 1),
        ("Trace", TRACE),
        ("Debug", logging.DEBUG),
        ("Info", logging.INFO),
        ("Warn", logging.WARNING),
        ("Error", logging.ERROR),
        ("Off", logging.CRITICAL + 1),
    ],
)
@pytest.mark.parametrize("case", [str.title, str.lower, str.upper])
def test_level(name: str, level: int, case: Any) -> None:
    """A level of goharvest's is one of Python's, in any case."""
    assert load(f"{LEAST}logging: {{level: {case(name)}}}\n").level == level


def test_kafka_settings_keep_their_types() -> None:
    """Kafka's settings are of the types that YAML gives them; a date is text."""
    settings = "{a: 1, b: 1.5, c: true, d: yes, e: '1', f: x, g: 2020-01-01, h: ~, i: ''}"
    assert load_with(f"producerKafkaConfig: {settings}").producer_kafka == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": True,
        "e": "1",
        "f": "x",
        "g": "2020-01-01",
    }


def test_merge() -> None:
    """YAML's anchors and merges work, and what a mapping has itself goes first."""
    text = """\
harvest:
  dataSource: host=localhost
  baseKafkaConfig: &kafka
    bootstrap.servers: localhost:9092
    client.id: base
  producerKafkaConfig:
    client.id: producer
    <<: *kafka
"""
    assert load(text).harvest.producer_kafka == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "producer",
    }


@given(st.builds(Limits, heartbeat_timeout=st.integers(200, 10**9).map(lambda ms: ms / 1000)))
def test_round_trip_of_limits(limits: Limits) -> None:
    """Limits that are written down are read as they were."""
    written = {
        to_camel(field): format_duration(value) if isinstance(value, float) else value
        for field, value in limits
    }
    assert load_with(f"limits: {json.dumps(written)}").limits == limits
