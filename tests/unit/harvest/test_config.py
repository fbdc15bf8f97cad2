from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from harvest_dagster.harvest.config import HarvestConfig, Limits

KAFKA = {"bootstrap.servers": "localhost:9092"}


def config(**given: Any) -> HarvestConfig:
    """A config that has what it must."""
    return HarvestConfig(**{"base_kafka": KAFKA, "postgres": "host=localhost", **given})


def test_defaults() -> None:
    """Each default is as documented."""
    made = config()
    assert made.postgres.get_secret_value() == "host=localhost"
    assert made.model_dump(exclude={"postgres", "limits"}) == {
        "outbox": "outbox",
        "name": "outbox",
        "base_kafka": KAFKA,
        "producer_kafka": {},
        "leader_group": "outbox",
        "leader_topic": "outbox.neli",
        "delivery": "exactly_once",
        "marks": "claims",
        "on_rejected": "hold_key",
        "shards": 1,
        "retention": None,
        "event_days": 30,
        "label": None,
        "metrics": None,
    }


GOHARVEST_LIMITS = {
    "io_error_backoff": 0.5,
    "heartbeat_timeout": 5,
    "drain_timeout": 30,
    "max_in_flight_records": 1000,
    "mark_query_records": 100,
    "min_metrics_interval": 5,
}


@pytest.mark.parametrize(
    ("limits", "in_flight", "marked"),
    [
        (config(delivery="at_least_once").limits, 4_000, 1_000),
        (config().limits, 20_000, 5_000),
        (Limits(), 20_000, 5_000),
    ],
)
def test_limits(limits: Limits, in_flight: int, marked: int) -> None:
    """The limits are goharvest's, but more records are marked at once and in flight."""
    differing = {"max_in_flight_records": in_flight, "mark_query_records": marked}
    assert limits.model_dump() == {
        **GOHARVEST_LIMITS,
        **differing,
        "max_in_flight_bytes": 32 * 1024 * 1024,
    }


@pytest.mark.parametrize(
    ("delivery", "limits", "in_flight", "marked"),
    [
        ("exactly_once", {"heartbeat_timeout": 3}, 20_000, 5_000),
        ("at_least_once", {"heartbeat_timeout": 3}, 4_000, 1_000),
        ("exactly_once", {"max_in_flight_records": 60}, 60, 60),
        ("at_least_once", {"max_in_flight_records": 60}, 60, 60),
        ("at_least_once", {"max_in_flight_records": 20_000}, 20_000, 1_000),
        ("at_least_once", {"mark_query_records": 5_000}, 5_000, 5_000),
        ("exactly_once", {"mark_query_records": 100}, 20_000, 100),
    ],
)
@pytest.mark.parametrize("kind", [dict, Limits])
def test_given_limits_are_honoured(
    kind: Any, delivery: str, limits: dict[str, int], in_flight: int, marked: int
) -> None:
    """A limit that is given stands; of the other the default gives way to it."""
    made = config(delivery=delivery, limits=kind(**limits)).limits
    assert (made.max_in_flight_records, made.mark_query_records) == (in_flight, marked)


@pytest.mark.parametrize("given", [7.0, "7s", timedelta(seconds=7)])
def test_durations(given: Any) -> None:
    """A duration is a number of seconds, a text as Go has it, or a timedelta."""
    assert Limits(drain_timeout=given).drain_timeout == 7


@pytest.mark.parametrize("make", [Limits.model_validate, lambda old: config(limits=old).limits])
def test_the_old_name_of_the_drain_timeout(make: Any) -> None:
    """It is taken, alone and in a config, and a warning names the new one."""
    with pytest.warns(DeprecationWarning, match="write drain_timeout, not queue_timeout"):
        assert make({"queue_timeout": "7s"}).drain_timeout == 7


@pytest.mark.parametrize(
    ("given", "derived"),
    [
        ({"outbox": "Shop.Outbox"}, ("shop.outbox", "shop.outbox", "shop.outbox.neli")),
        (
            {"name": "my app"},
            ("my app", "my_app-cccdfa68", "my_app-cccdfa68.neli"),
        ),
        ({"leader_group": "g"}, ("outbox", "g", "g.neli")),
        ({"leader_topic": "t"}, ("outbox", "outbox", "t")),
    ],
)
def test_derived_names(given: dict[str, str], derived: tuple[str, str, str]) -> None:
    """The name follows from the table, the group from the name, and the topic from the group."""
    made = config(**given)
    assert (made.name, made.leader_group, made.leader_topic) == derived


def test_names_that_kafka_would_not_tell_apart() -> None:
    """Two outboxes never share a group, though Kafka takes no character that sets them apart."""
    tables = ['"заказы"', '"товары"', '"a b"', "a_b", '"a.b"', "a.b"]
    assert len({config(outbox=table).leader_group for table in tables}) == len(tables)
    longest = config(name="é" * 200)
    assert len(longest.leader_topic) <= 249


@pytest.mark.parametrize(
    ("metrics", "address"),
    [
        (None, None),
        (9100, "127.0.0.1:9100"),
        ("9100", "127.0.0.1:9100"),
        (":9100", "127.0.0.1:9100"),
        ("0.0.0.0:9100", "0.0.0.0:9100"),
        ("[::1]:9100", "[::1]:9100"),
        ("metrics.local:0", "metrics.local:0"),
    ],
)
def test_metrics(metrics: object, address: str | None) -> None:
    """The meters are served to this machine alone, unless a host is named."""
    assert config(metrics=metrics).metrics == address


def test_postgres_is_ready_to_connect() -> None:
    """A place of PostgreSQL is kept as psycopg takes it."""
    made = config(postgres="postgresql://u:p%20w@h/d?binary_parameters=yes")
    assert made.postgres.get_secret_value() == "user=u password='p w' dbname=d host=h"
