from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harvest_dagster import ConfigError, load_settings
from harvest_dagster.config import KAFKA_MESSAGE_BYTES, names_own_servers

PLACES = ["argument", "environment", "harvest.toml", "servers.json"]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Name the same setting in some of the four places, each with a value of its own."""

    def name(key: str, values: dict[str, str]) -> dict[str, str]:
        if "environment" in values:
            monkeypatch.setenv(f"HARVEST_{key.upper()}", values["environment"])
        if "harvest.toml" in values:
            Path("harvest.toml").write_text(f"{key} = {json.dumps(values['harvest.toml'])}")
        if "servers.json" in values:
            write_servers({key: values["servers.json"]})
        return {key: values["argument"]} if "argument" in values else {}

    return name


def write_servers(servers: object, home: str = ".harvest") -> None:
    """Write what `harvest dev up` leaves in its home."""
    Path(home).mkdir(exist_ok=True)
    Path(home, "servers.json").write_text(json.dumps(servers))


def url(place: str) -> str:
    """A URL that tells where it was named."""
    return f"postgresql://{place}/db"


@pytest.mark.parametrize("first", range(4), ids=PLACES)
def test_precedence_of_postgres(named: Any, first: int) -> None:
    """The argument goes before the environment, harvest.toml, and the servers of this machine."""
    given = named("postgres", {place: url(place) for place in PLACES[first:]})
    assert load_settings(**given).postgres_url() == url(PLACES[first])


@pytest.mark.parametrize("first", range(4), ids=PLACES)
def test_precedence_of_kafka(named: Any, first: int) -> None:
    """Kafka is taken from the first place that names it."""
    given = named("kafka", {place: f"{place}:9092" for place in PLACES[first:]})
    assert load_settings(**given).kafka_config() == {"bootstrap.servers": f"{PLACES[first]}:9092"}


def test_kafka_is_not_mixed() -> None:
    """A Kafka's settings come whole from one place, with nothing of another Kafka's."""
    Path("harvest.toml").write_text('[kafka]\n"bootstrap.servers" = "prod:9092"')
    write_servers({"kafka": {"bootstrap.servers": "localhost:1", "security.protocol": "ssl"}})
    assert load_settings().kafka_config() == {"bootstrap.servers": "prod:9092"}


def test_defaults() -> None:
    """Where nothing is named, the outbox is `outbox` and messages are as large as Kafka's own."""
    settings = load_settings()
    assert (settings.outbox, settings.max_message_bytes) == ("outbox", KAFKA_MESSAGE_BYTES)


def test_none_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument of None leaves the setting to the other places."""
    monkeypatch.setenv("HARVEST_OUTBOX", "elsewhere")
    assert load_settings(outbox=None).outbox == "elsewhere"


def test_empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable is no setting."""
    monkeypatch.setenv("HARVEST_OUTBOX", "")
    assert load_settings().outbox == "outbox"


@pytest.mark.parametrize("place", ["environment", "harvest.toml", "argument"])
def test_home_of_the_servers(named: Any, place: str) -> None:
    """The servers are looked for in the home that is named."""
    write_servers({"postgres": url("home")}, "elsewhere")
    given = named("home", {place: "elsewhere"})
    assert load_settings(**given).postgres_url() == url("home")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a:9092,b:9092", {"bootstrap.servers": "a:9092,b:9092"}),
        (
            ' {"bootstrap.servers": "a:1", "linger.ms": 5, "enable.idempotence": true}',
            {"bootstrap.servers": "a:1", "linger.ms": 5, "enable.idempotence": True},
        ),
    ],
)
def test_kafka_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, settings: dict[str, Any]
) -> None:
    """HARVEST_KAFKA is addresses, or a JSON object of librdkafka's settings."""
    monkeypatch.setenv("HARVEST_KAFKA", text)
    assert load_settings().kafka_config() == settings


def test_kafka_as_toml_table() -> None:
    """Kafka in harvest.toml may be a table of librdkafka's settings."""
    Path("harvest.toml").write_text('[kafka]\n"bootstrap.servers" = "a:1"\n"linger.ms" = 5')
    assert load_settings().kafka_config() == {"bootstrap.servers": "a:1", "linger.ms": 5}


def test_kafka_config_is_a_copy() -> None:
    """What a client does to its settings is not done to ours."""
    settings = load_settings(kafka="a:1")
    settings.kafka_config()["linger.ms"] = 5
    assert settings.kafka_config() == {"bootstrap.servers": "a:1"}


def test_frozen() -> None:
    """Settings can't be changed once they are made."""
    with pytest.raises(ValueError, match="frozen"):
        load_settings().outbox = "other"


@pytest.mark.parametrize("place", ["environment", "harvest.toml"])
def test_names_own_servers(named: Any, place: str) -> None:
    """A PostgreSQL that the user named counts as the user's own."""
    named("postgres", {place: url("mine")})
    assert names_own_servers()


def test_names_no_servers() -> None:
    """A PostgreSQL that only `harvest dev up` named does not count as the user's own."""
    write_servers({"postgres": url("ours")})
    assert (names_own_servers(), load_settings().postgres_url()) == (False, url("ours"))


@pytest.mark.parametrize("settings", [{}, {"kafka": {"linger.ms": 5}}])
def test_no_kafka(settings: dict[str, Any]) -> None:
    """Without bootstrap addresses there is no Kafka, and the error says how to name one."""
    with pytest.raises(ConfigError, match="no Kafka is configured: set HARVEST_KAFKA=host:9092"):
        load_settings(**settings).kafka_config()


def test_no_postgres() -> None:
    """Without a URL there is no PostgreSQL, and the error says how to name one."""
    with pytest.raises(ConfigError, match="no PostgreSQL is configured: set HARVEST_POSTGRES="):
        load_settings().postgres_url()
