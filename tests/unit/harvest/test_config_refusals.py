from __future__ import annotations

from typing import Any

import pytest

from harvest_dagster import ConfigError
from harvest_dagster.harvest.config import HarvestConfig, Limits
from harvest_dagster.harvest.goharvest_limits import GoharvestLimits

KAFKA = {"bootstrap.servers": "localhost:9092"}
KAFKA_NAME = "it must be of 1 to 249 letters, digits, '.', '_' and '-'"
ADDRESS = "this is no address: give a port, or host:port, or [host]:port"
DURATION = "write 100ms, 5s or 1h30m, of ns, us, ms, s, m and h"


def config(**given: Any) -> HarvestConfig:
    """A config that has what it must."""
    return HarvestConfig(**{"base_kafka": KAFKA, "postgres": "host=localhost", **given})


def refusal(**given: Any) -> str:
    """What is said of a config that is refused."""
    with pytest.raises(ConfigError) as error:
        config(**given)
    return str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("shards", 0, "Input should be greater than or equal to 1"),
        ("shards", True, "it must be a whole number"),
        ("shards", 1.5, "Input should be a valid integer, got a number with a fractional part"),
        ("event_days", 0, "Input should be greater than or equal to 1"),
        ("delivery", "twice", "Input should be 'exactly_once', 'at_least_once' or 'sequenced'"),
        ("marks", "x", "Input should be 'claims' or 'rows'"),
        ("on_rejected", "x", "Input should be 'hold_key' or 'skip'"),
        ("retention", "30d", f"this is no duration: {DURATION}"),
        ("retention", 0, "it must be 1ms or more"),
        ("metrics", "::1:9100", ADDRESS),
        ("metrics", 65_536, ADDRESS),
        ("metrics", "localhost", ADDRESS),
        (
            "outbox",
            "a b",
            "this is no table name: write table or schema.table, quoted where SQL needs it",
        ),
        ("name", "", "it must be of 1 to 200 printable characters"),
        ("name", "a" * 201, "it must be of 1 to 200 printable characters"),
        ("name", "a\0", "it must be of 1 to 200 printable characters"),
        ("leader_topic", "..", KAFKA_NAME),
        ("leader_topic", "a b", KAFKA_NAME),
        ("leader_topic", "", KAFKA_NAME),
        ("leader_group", "g" * 250, KAFKA_NAME),
        ("base_kafka", {}, "it needs bootstrap.servers, as host:9092"),
        ("base_kafka", "b:9092", "Input should be a valid dictionary"),
        ("producer_kafka", {"acks": []}, "acks must be text, a number, true or false"),
    ],
)
def test_refusals(field: str, value: object, said: str) -> None:
    """What is wrong is refused with its field and what may stand there."""
    assert refusal(**{field: value}) == f"{field}: {said}"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("max_in_flight_bytes", 0, "Input should be greater than or equal to 1"),
        ("io_error_backoff", -1, "it must be 0s or more"),
        ("heartbeat_timeout", "-1s", "it must be 1ms or more"),
        ("drain_timeout", "30", f"it lacks its unit: {DURATION}"),
        (
            "mark_query_records",
            20_001,
            "20001 is more than the 20000 records that may be in flight",
        ),
    ],
)
def test_refusals_of_limits(field: str, value: object, said: str) -> None:
    """A limit that is wrong is refused, alone and in a config."""
    assert refusal(limits={field: value}) == f"{field}: {said}"
    with pytest.raises(ConfigError) as error:
        Limits.model_validate({field: value})
    assert str(error.value) == f"{field}: {said}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"leader_group": "g" * 249}, f"leader_topic: {KAFKA_NAME}"),
        (
            {"limits": {"max_in_flight_records": 10, "mark_query_records": 11}},
            "mark_query_records: 11 is more than the 10 records that may be in flight",
        ),
        ({"limits": 5}, "Limits: Input should be a valid dictionary or instance of Limits"),
        (
            {"shards": 0, "event_days": 0},
            (
                "shards: Input should be greater than or equal to 1; event_days: Input should be"
                " greater than or equal to 1"
            ),
        ),
    ],
)
def test_refusals_of_several(given: dict[str, Any], said: str) -> None:
    """What does not fit together, or is wrong in several places, is told as such."""
    assert refusal(**given) == said


def test_missing() -> None:
    """What must be given is asked for."""
    with pytest.raises(ConfigError) as error:
        HarvestConfig.model_validate({})
    assert str(error.value) == (
        "base_kafka: it is missing; give librdkafka's settings for every client, bootstrap.servers"
        " at least; postgres: it is missing; give postgresql://..., or libpq's key=value pairs"
    )


def test_unknown() -> None:
    """A field that there is not is refused with those that there are."""
    said = refusal(shard=1)
    assert said.startswith("shard: no such setting; there are outbox, name, base_kafka, ")
    with pytest.raises(ConfigError, match="heartbeat: no such setting; there are io_error_backoff"):
        Limits.model_validate({"heartbeat": 1})


@pytest.mark.parametrize("limit", sorted(GoharvestLimits.model_fields.keys() - Limits.model_fields))
def test_limits_without_effect(limit: str) -> None:
    """A limit that a reaper.yaml may have, and that has no effect, is none of a config's."""
    known = ", ".join(Limits.model_fields)
    assert refusal(limits={limit: "1s"}) == f"{limit}: no such setting; there are {known}"


def test_both_names_of_the_drain_timeout() -> None:
    """The old name is refused beside the new one."""
    both = {"drain_timeout": 1, "queue_timeout": 1}
    assert refusal(limits=both).startswith("queue_timeout: no such setting; there are ")


def test_frozen() -> None:
    """A config does not change, and the refusal to change it shows no value."""
    with pytest.raises(ConfigError) as error:
        config().name = "hunter2"
    assert str(error.value) == "name: a config does not change; make another"
