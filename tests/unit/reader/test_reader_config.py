"""What a reader's configuration takes, what it makes of it, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from harvest_dagster.errors import ConfigError
from harvest_dagster.reader import PostgresStore, Reader, ReaderConfig
from harvest_dagster.reader.intake import Intake

GIVEN: dict[str, Any] = {
    "name": "totals",
    "topics": ("orders",),
    "kafka": {"bootstrap.servers": "k:9092"},
    "postgres": "postgresql://u:hidden@db/shop",
}


def config(**changes: Any) -> ReaderConfig:
    """Make a config."""
    return ReaderConfig(**{**GIVEN, **changes})


def test_what_it_takes() -> None:
    """One topic alone, a topic twice, durations as text."""
    made = config(topics="orders", horizon="1h", batch_seconds="100ms")
    assert (made.topics, made.horizon, made.batch_seconds) == (("orders",), 3600.0, 0.1)
    assert config(topics=["b", "a", "b"]).topics == ("b", "a")


def test_the_group() -> None:
    """It is the name, as Kafka takes it."""
    assert config().group == "totals"
    assert config(name="my totals").group.startswith("my_totals-")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"topics": ()}, "topics: "),
        ({"topics": ("a b",)}, "topics: "),
        ({"name": ""}, "name: it must be of 1 to 200 printable characters"),
        ({"kafka": {}}, "kafka: it needs bootstrap.servers"),
        ({"uuid": "never"}, "uuid: "),
        ({"ring": 0}, "ring: "),
        ({"batch_seconds": 0}, "batch_seconds: it must be 1ms or more"),
        ({"horizon": "5"}, "horizon: it lacks its unit"),
        ({"batch_messages": True}, "batch_messages: it must be a whole number"),
        ({"size": 1}, "size: no such setting"),
        ({"postgres": "hidden@"}, "postgres: this is no place of a PostgreSQL"),
    ],
)
def test_what_it_refuses(changes: dict[str, Any], why: str) -> None:
    """The field is named, and what may stand there; never the value."""
    with pytest.raises(ConfigError) as refused:
        config(**changes)
    assert str(refused.value).startswith(why)
    assert "hidden" not in str(refused.value)


def test_it_shows_no_secret() -> None:
    """Neither by its repr nor by a dump."""
    made = config(kafka={"bootstrap.servers": "k:9092", "sasl.password": "hidden"})
    assert "hidden" not in f"{made!r} {made} {made.model_dump()} {made.model_dump_json()}"
    assert "hidden" not in repr(PostgresStore(GIVEN["postgres"]))


def test_settings_of_kafka_that_are_the_readers_own() -> None:
    """A reader goes by its store: whoever would have it otherwise is told."""
    with pytest.raises(ConfigError, match=r"isolation\.level can't be set here"):
        Intake({**GIVEN["kafka"], "isolation.level": "read_uncommitted"}, "totals", {})


def test_a_reader_without_servers() -> None:
    """It says where they may be named."""
    with pytest.raises(ConfigError, match="no PostgreSQL is configured"):
        Reader("totals", topics=["a"], store=PostgresStore("host=db"), apply=lambda _batch: None)
