from __future__ import annotations

import json
from pathlib import Path

import pytest

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml

LEAST = """\
harvest:
  baseKafkaConfig: {bootstrap.servers: "localhost:9092"}
  dataSource: host=localhost
"""


def load(text: str) -> HarvestConfig:
    """Read a reaper.yaml of this text."""
    Path("reaper.yaml").write_text(text, encoding="utf-8")
    return load_reaper_yaml("reaper.yaml").harvest


def load_with(line: str) -> HarvestConfig:
    """Read a reaper.yaml of the least there must be, and a line more."""
    return load(f"{LEAST}  {line}\n")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("${APP}", "shop"),
        ("a-${APP}-${APP}", "a-shop-shop"),
        ("$APP", "$APP"),
        ("$$APP", "$$APP"),
        ("$${APP}", "${APP}"),
        ("$${APP}${APP}", "${APP}shop"),
        ("100$", "100$"),
    ],
)
def test_variables(monkeypatch: pytest.MonkeyPatch, written: str, read: str) -> None:
    """Variables of the environment stand in values, and a literal ${ can be written."""
    monkeypatch.setenv("APP", "shop")
    assert load_with(f"harvestName: {written}").name == read
    assert load_with(f"producerKafkaConfig: {{client.id: '{written}'}}").producer_kafka == {
        "client.id": read
    }


def test_variable_is_no_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a variable has is taken as it is, whatever it would be in YAML."""
    monkeypatch.setenv("PASSWORD", "#a: *b\n${HOME}")
    made = load_with("producerKafkaConfig: {sasl.password: '${PASSWORD}'}")
    assert made.producer_kafka["sasl.password"] == "#a: *b\n${HOME}"


def test_number_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable can have a number too."""
    monkeypatch.setenv("SHARDS", "4")
    assert load_with("shards: ${SHARDS}").shards == 4


def test_servers_of_this_machine() -> None:
    """What the file does not say of PostgreSQL and Kafka, `harvest dev up` does."""
    Path(".harvest").mkdir()
    kafka = {"bootstrap.servers": "localhost:1", "security.protocol": "ssl"}
    servers = {"postgres": "postgresql://localhost/db", "kafka": kafka}
    Path(".harvest/servers.json").write_text(json.dumps(servers))
    made = load("harvest: {baseKafkaConfig: {client.id: me}}")
    assert made.postgres.get_secret_value() == "dbname=db host=localhost"
    assert made.base_kafka == {**kafka, "client.id": "me"}


@pytest.mark.parametrize(
    ("line", "outbox", "name"),
    [
        ("", "shop.outbox", "shop.outbox"),
        ("outboxTable: other", "other", "other"),
        ("harvestName: shop", "shop.outbox", "shop"),
    ],
)
def test_outbox_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, line: str, outbox: str, name: str
) -> None:
    """Where the file names no outbox, it is the one that all other commands work on."""
    monkeypatch.setenv("HARVEST_OUTBOX", "shop.outbox")
    made = load_with(line)
    assert (made.outbox, made.name) == (outbox, name)


def test_outbox_of_nobody() -> None:
    """Where nothing names one, it is goharvest's own default."""
    assert load(LEAST).outbox == "outbox"


def test_file_goes_first() -> None:
    """Of a Kafka that the file names, no setting comes from elsewhere."""
    Path("harvest.toml").write_text(
        'postgres = "postgresql://other/db"\n[kafka]\n"bootstrap.servers" = "other:1"\n"acks" = 1'
    )
    made = load(LEAST)
    assert made.postgres.get_secret_value() == "host=localhost"
    assert made.base_kafka == {"bootstrap.servers": "localhost:9092"}
