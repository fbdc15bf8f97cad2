"""Users' mistakes: a tick says what is wrong; when it was mended, a tick says that it leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pytest

from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.candidacy import candidacy_of
from harvest_dagster.orchestration.names import Names
from harvest_dagster.orchestration.sensor import leader_sensor
from tests.integration.harvest.place import Place, place, until

__all__ = ["place"]

# Dagster's own, where it sets up a resource that has resources.
pytestmark = pytest.mark.filterwarnings("ignore:InitResourceContext:DeprecationWarning")

LEADS = "leader, epoch"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster that keeps nothing."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def resource(
    place: Place, *, postgres: str | None = None, kafka: str | None = None
) -> HarvestResource:
    """A harvest of the place, but for what is wrong with it."""
    return HarvestResource(
        outbox=OutboxResource(postgres=postgres or place.postgres),
        kafka=KafkaResource(bootstrap_servers=kafka or place.kafka["bootstrap.servers"]),
        neli=NeliResource(name=place.name, leader_topic=f"{place.name}.neli"),
    )


def tick(harvest: HarvestResource, instance: dg.DagsterInstance, key: str = "harvest") -> str:
    """Let a sensor tick once; tell what it says, or that it asks for a tour."""
    sensor = leader_sensor(Names(key), [], running=False)
    with dg.build_sensor_context(
        instance=instance, resources={key: harvest}, sensor_name=sensor.name
    ) as context:
        result: Any = sensor.evaluate_tick(context)
    return str(result.skip_message or LEADS)


@contextmanager
def leading(harvest: HarvestResource, instance: dg.DagsterInstance) -> Iterator[None]:
    """Tick until it leads; resign at the end."""
    try:
        until(lambda: LEADS in tick(harvest, instance), what="it leads")
        yield
    finally:
        candidacy_of(harvest.config(), "harvest_leader", []).stop()


def test_a_wrong_password(place: Place, instance: dg.DagsterInstance) -> None:
    """The tick names the server's refusal, never the password."""
    wrong = place.postgres.replace(place.postgres.split(":")[2].split("@")[0], "mistyped")
    said = tick(resource(place, postgres=wrong), instance)
    assert "password authentication failed" in said
    assert "mistyped" not in said
    with leading(resource(place), instance):
        pass


def test_kafka_is_down(place: Place, instance: dg.DagsterInstance) -> None:
    """The ticks go on, and name who does not answer."""
    down = resource(place, kafka="127.0.0.1:1")
    until(lambda: "127.0.0.1:1" in tick(down, instance), what="a tick says so")
    with leading(resource(place), instance):
        pass


def test_a_missing_table(place: Place, instance: dg.DagsterInstance) -> None:
    """The tick names the table and what makes it."""
    place.rows("ALTER TABLE outbox RENAME TO elsewhere")
    said = tick(resource(place), instance)
    assert "outbox" in said
    assert "create" in said
    place.rows("ALTER TABLE elsewhere RENAME TO outbox")
    with leading(resource(place), instance):
        pass


def test_two_sensors(place: Place, instance: dg.DagsterInstance) -> None:
    """The second one says which is the first."""
    with leading(resource(place), instance):
        said = tick(resource(place), instance, "other")
    assert "harvest_leader and other_leader" in said


def test_a_missing_resource() -> None:
    """A sensor without its resource does not even load."""
    sensor = leader_sensor(Names("shop"), [], running=False)
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="shop"):
        dg.Definitions.validate_loadable(dg.Definitions(sensors=[sensor]))
