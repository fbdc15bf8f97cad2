"""A tour's run ends when its time is up, whatever is stuck then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import pytest
from dagster import ExecuteInProcessResult

from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
    harvest_definitions,
)
from tests.support.place import Place

# Dagster's own, where it sets up a resource that has resources.
pytestmark = pytest.mark.filterwarnings("ignore:InitResourceContext:DeprecationWarning")
DRAIN_SECONDS = 5


@pytest.fixture
def harvest(place: Place) -> HarvestResource:
    """A harvest of the place."""
    return HarvestResource(
        outbox=OutboxResource(postgres=place.postgres, table="outbox"),
        kafka=KafkaResource(settings={key: str(value) for key, value in place.kafka.items()}),
        neli=NeliResource(name=place.name, leader_topic=f"{place.name}.neli"),
        drain_timeout=f"{DRAIN_SECONDS}s",
    )


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Keep what is in the outbox from being purged, for less than a test may last."""
    with place.connect() as holding, holding.transaction():
        holding.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")
        holding.execute("SELECT FROM outbox FOR UPDATE")
        yield


def toured(harvest: HarvestResource, seconds: float) -> ExecuteInProcessResult:
    """Let a tour run for so long."""
    job = harvest_definitions(harvest).resolve_job_def("harvest_tour")
    config = {"ops": {"mark": {"config": {"minutes": seconds / 60}}}}
    return job.execute_in_process(run_config=config, instance=dg.DagsterInstance.ephemeral())


def test_what_is_stuck_is_left_to_the_next(place: Place, harvest: HarvestResource) -> None:
    """A drain is cut off once, and its end is not put off: the next tour settles what is left."""
    place.lease(ttl=180)
    place.put(1)
    with locked(place):
        stuck = toured(harvest, 2)
        assert place.waiting() == 1
    assert stuck.success
    assert toured(harvest, 2).success
    assert place.waiting() == 0
