"""Users' mistakes: a tick says what is wrong; when it was mended, a tick says that it leads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pytest

from harvest_dagster.harvest.room import ROOM
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.candidacy import candidacy_of
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.sensor import leader_sensor
from harvest_dagster.orchestration.tour_job import tour_job
from tests.support.place import Place
from tests.support.waiting import until

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
    return str(ticked(harvest, instance, key).skip_message or LEADS)


def ticked(
    harvest: HarvestResource,
    instance: dg.DagsterInstance,
    key: str = "harvest",
    cursor: str | None = None,
) -> Any:
    """Let a sensor tick once; tell what comes of it."""
    sensor = leader_sensor(Names(key), [], running=False)
    with dg.build_sensor_context(
        instance=instance, resources={key: harvest}, sensor_name=sensor.name, cursor=cursor
    ) as context:
        return sensor.evaluate_tick(context)


def judged(result: Any) -> dict[str, bool]:
    """Tell which checks a tick has reported, and whether they are green."""
    events = result.asset_events
    return {e.check_name: e.passed for e in events if isinstance(e, dg.AssetCheckEvaluation)}


@contextmanager
def leading(harvest: HarvestResource, instance: dg.DagsterInstance) -> Iterator[None]:
    """Tick until it leads; resign at the end."""
    try:
        until(lambda: LEADS in tick(harvest, instance), what="it leads")
        yield
    finally:
        candidacy_of(ROOM, harvest.led(), "harvest_leader").stop()


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


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [
        ("ALTER TABLE outbox RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO outbox"),
        ("ALTER SCHEMA harvest RENAME TO gone", "ALTER SCHEMA gone RENAME TO harvest"),
    ],
    ids=["table", "schema"],
)
def test_checks_of_what_is_gone(
    place: Place,
    instance: dg.DagsterInstance,
    breaks: str,
    mends: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No check stays green when nothing can be seen, as the log says; all turn green again."""
    harvest = resource(place)
    with leading(harvest, instance):
        until(lambda: all(judged(ticked(harvest, instance)).values()), what="all are green")
        well = ticked(harvest, instance).cursor
        place.rows(breaks)
        gone = ticked(harvest, instance, cursor=well)
        place.rows(mends)
        assert gone.skip_message
        assert "one_leader is red: it can't be told" in capfd.readouterr().err
        assert set(judged(gone).values()) == {False}
        assert judged(gone).keys() == judged(ticked(harvest, instance)).keys()
        again = ticked(harvest, instance, cursor=gone.cursor)
        assert judged(again) == dict.fromkeys(judged(gone), True)


def test_a_tick_without_news_leaves_no_file(place: Place, instance: dg.DagsterInstance) -> None:
    """Dagster would keep one for each tick; what has happened is logged in the tick that saw it."""
    sensor = leader_sensor(Names("harvest"), [], running=False)
    harvest, cursor, wrote = resource(place), "", []
    with leading(harvest, instance):
        for _ in range(2):
            with dg.build_sensor_context(
                instance=instance,
                resources={"harvest": harvest},
                sensor_name=sensor.name,
                cursor=cursor,
            ) as context:
                cursor = str(sensor.evaluate_tick(context).cursor)
                wrote.append(context._logger is not None)  # noqa: SLF001 - what writes the file
    assert wrote == [True, False]


def test_two_sensors(place: Place, instance: dg.DagsterInstance) -> None:
    """The second one says which is the first."""
    with leading(resource(place), instance):
        said = tick(resource(place), instance, "other")
    assert "harvest_leader and other_leader" in said
    until(lambda: tick(resource(place), instance, "other") == LEADS, what="the other one leads")
    candidacy_of(ROOM, resource(place).led(), "other_leader").stop()


def test_a_missing_resource() -> None:
    """A sensor without its resource does not even load; with it, it does."""
    sensor = leader_sensor(Names("shop"), [], running=False)
    (tour,) = [tour_job(Names("shop"))]
    without = dg.Definitions(sensors=[sensor], jobs=[tour])
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="shop"):
        dg.Definitions.validate_loadable(without)
    resources = {"shop": HarvestResource(), "shop_handles": dg.mem_io_manager}
    mended = dg.Definitions.merge(without, dg.Definitions(resources=resources))
    dg.Definitions.validate_loadable(mended)
