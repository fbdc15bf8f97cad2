from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.clients import Batching, Clients, producer_settings
from harvest_dagster.harvest.config import HarvestConfig


def unfenced(**producer: Any) -> HarvestConfig:
    """Configure a harvest whose producer no Kafka fences."""
    return HarvestConfig(
        base_kafka={"bootstrap.servers": "localhost:9"},
        postgres=SecretStr("host=localhost"),
        delivery="at_least_once",
        producer_kafka={name.replace("_", "."): value for name, value in producer.items()},
    )


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        ({}, 1000),
        ({"linger_ms": 900}, 1900),
        ({"queue_buffering_max_ms": 60_000}, 61_000),
        ({"message_timeout_ms": 200}, 200),
        ({"message_timeout_ms": 0}, 5000),
        ({"message_timeout_ms": 50_000, "linger_ms": 900}, 5000),
        ({"message_timeout_ms": 50_000, "linger_ms": 4900}, 5900),
        ({"message_timeout_ms": 500, "linger_ms": 900}, 901),
    ],
)
def test_how_long_a_message_may_wait(given: dict[str, int], waits: int) -> None:
    """At least once it is short, but leaves Kafka its time beside what the user has it linger."""
    assert producer_settings(unfenced(**given))["message.timeout.ms"] == waits


def test_the_shorter_time_counts() -> None:
    """Where a user sets both names of the time, both are set to the shorter."""
    settings = producer_settings(unfenced(message_timeout_ms=200, delivery_timeout_ms=300))
    assert (settings["message.timeout.ms"], settings["delivery.timeout.ms"]) == (200, 200)


@pytest.mark.parametrize("name", ["linger.ms", "delivery.timeout.ms", "message.timeout.ms"])
def test_a_time_that_is_none(name: str) -> None:
    """At least once, a time that no number can be made of is refused by its name."""
    with pytest.raises(ConfigError, match=f"{name} must be a number of milliseconds"):
        Clients.open(unfenced(**{name: "soon"}), 0, Batching.LARGE)
