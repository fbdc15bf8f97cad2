from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from harvest_dagster import ConfigError, load_settings

SECRET = "hunter2"  # noqa: S105 - what must not be shown


def refusal(**given: Any) -> str:
    """What is said of settings that are refused, which is one line and no secret."""
    with pytest.raises(ConfigError) as error:
        load_settings(**given)
    said = str(error.value)
    assert "\n" not in said
    assert SECRET not in "".join(traceback.format_exception(error.value))
    return said


def test_unknown_key() -> None:
    """A key that is no setting is refused, with those that there are."""
    Path("harvest.toml").write_text('postgress = "postgresql://h/d"')
    assert refusal() == (
        "postgress: no such setting; there are postgres, kafka, outbox, max_message_bytes, home"
    )


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("max_message_bytes = 'many'", "max_message_bytes: Input should be a valid integer"),
        ("max_message_bytes = 0", "max_message_bytes: Input should be greater than 0"),
        ("outbox = 5", "outbox: Input should be a valid string; give the outbox's table"),
        ("kafka = 5", "kafka: Input should be a valid dictionary; give bootstrap addresses"),
        ("kafka = '{'", "kafka: Expecting property name"),
        ("kafka = '{} x'", "kafka: Extra data"),
        ("[kafka.sasl]\na = 'hunter2'", "kafka: Input should be a valid string"),
        ("postgres = 5", "postgres: Input should be a valid string"),
        ("home = 5", "home: Input is not a valid path"),
    ],
)
def test_wrong_value(toml: str, said: str) -> None:
    """A value of a wrong kind is refused with its key and what it may be."""
    Path("harvest.toml").write_text(toml)
    assert said in refusal()


@pytest.mark.parametrize(
    "url",
    [
        "hunter2",
        "mysql://harvest:hunter2@localhost/db",
        "host=localhost password=hunter2",
        "postgresql://harvest:hunter2%zz@localhost/db",
        "postgresql://harvest:hunter2/@localhost/db",
        "postgresql://harvest:a@hunter2@localhost/db",
        "postgresql://harvest@localhost/db?hunter2=1",
    ],
)
@pytest.mark.parametrize("place", ["argument", "environment", "harvest.toml"])
def test_no_url(monkeypatch: pytest.MonkeyPatch, place: str, url: str) -> None:
    """What is no URL that libpq could read is refused without showing any of it."""
    if place == "environment":
        monkeypatch.setenv("HARVEST_POSTGRES", url)
    if place == "harvest.toml":
        Path("harvest.toml").write_text(f"postgres = '{url}'")
    given = {"postgres": url} if place == "argument" else {}
    assert refusal(**given).startswith("postgres: this is no URL of PostgreSQL")


@pytest.mark.parametrize(
    "url",
    [
        "postgres://localhost",
        "postgresql:///db?host=/run/postgresql",
        "postgresql://a,b:5433/db?target_session_attrs=read-write",
        "postgresql://u:p%40%2F%25@[::1]:5432/db",
    ],
)
def test_url(url: str) -> None:
    """A URL of any form that libpq reads is taken as it is."""
    assert load_settings(postgres=url).postgres_url() == url


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("harvest.toml", b"postgres = "),
        ("harvest.toml", b"outbox = '\xff'"),
        (".harvest/servers.json", b"{"),
        (".harvest/servers.json", b'{"outbox": "\xff"}'),
        (".harvest/servers.json", b"5"),
        (".harvest/servers.json", b'["hunter2"]'),
    ],
)
def test_broken_file(file: str, content: bytes) -> None:
    """A file that can't be read as what it should be is named."""
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_bytes(content)
    assert refusal().startswith(f"{file} can't be read: ")


def test_all_faults_are_told() -> None:
    """Of several wrong settings each is named."""
    assert refusal(outbox=5, max_message_bytes=0).count(": Input should be") == 2


@pytest.mark.parametrize("show", [repr, str])
def test_secrets_are_not_shown(show: Any) -> None:
    """Neither PostgreSQL's password nor Kafka's shows where settings are printed."""
    settings = load_settings(
        postgres=f"postgresql://harvest:{SECRET}@localhost/db",
        kafka={"bootstrap.servers": "a:1", "sasl.password": SECRET},
    )
    assert SECRET not in show(settings)


def test_no_secret_when_kafka_is_missing() -> None:
    """The error of a missing Kafka shows none of what was given."""
    with pytest.raises(ConfigError) as error:
        load_settings(kafka={"sasl.password": SECRET}).kafka_config()
    assert SECRET not in str(error.value)
