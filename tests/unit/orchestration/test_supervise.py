"""When a tour is started, and when not; on a real instance of Dagster, in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
from dagster import DagsterEvent, DagsterEventType, DagsterInstance, DagsterRunStatus

from harvest_dagster.orchestration import harvest_definitions
from harvest_dagster.orchestration.candidacy import Candidacy
from harvest_dagster.orchestration.part_names import (
    EPOCH_TAG,
    HOLDER_TAG,
    OUTBOX_TAG,
    SHARD_TAG,
    TABLE_TAG,
    Names,
)
from harvest_dagster.orchestration.supervise import Step, Supervisor
from tests.support.statuses import harvesting, lease, status, tour

NAMES = Names("harvest")
TABLE = "localhost:5432/shop/public/outbox"
TAGS = {OUTBOX_TAG: "harvest", TABLE_TAG: TABLE, SHARD_TAG: "0", HOLDER_TAG: "us"}


class Stands(Candidacy):
    """A candidacy that leads or not, as the test says, without servers."""

    def __init__(self, *, leading: bool) -> None:
        self.leading, self.led = leading, harvesting()

    @property
    def holder(self) -> str:
        """The holder of the tests' lease."""
        return "us"

    @property
    def place(self) -> str:
        """The table of the tests."""
        return TABLE

    @property
    def troubles(self) -> list[str]:
        """One trouble."""
        return ["Kafka: no answer"]

    def leads(self, shard: int) -> bool:
        """What the test said."""
        return self.leading and shard == 0


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """An instance in memory."""
    with DagsterInstance.ephemeral() as made:
        yield made


def run(instance: DagsterInstance, state: DagsterRunStatus, **tags: str) -> dg.DagsterRun:
    """Leave a run of the tour's job."""
    job = harvest_definitions().resolve_job_def(NAMES.job("tour"))
    return instance.create_run_for_job(job, status=state, tags={**TAGS, **tags})


def step(instance: DagsterInstance, *, leading: bool = True, later: float = 0.0, **of: Any) -> Step:
    """Decide, when so many seconds have passed."""
    stands, now = Stands(leading=leading), time.time() + later
    return Supervisor(instance, NAMES, stands, status(**of), "mark", now).step(0)


def test_who_does_not_lead_stands_by(instance: DagsterInstance) -> None:
    """Another leads, or nobody does; troubles are told."""
    found = step(instance, leading=False, leases=[lease(holder="them")])
    assert found == Step("standing by, them leads under epoch 7; Kafka: no answer")
    assert step(instance, leading=False, leases=[]).line.startswith("standing for election")


def test_a_tour_is_started(instance: DagsterInstance) -> None:
    """A leader without a tour asks for one, with the epoch in its key and its tags."""
    found = step(instance, tours=[])
    assert found.request is not None
    assert found.request.run_key == "harvest/0/7/first"
    assert found.request.tags[EPOCH_TAG] == "7"
    assert found.line == "leader, epoch 7, a tour is asked for"


def test_a_tour_that_runs_is_told_of(instance: DagsterInstance) -> None:
    """While it lives, nothing is asked for."""
    going = run(instance, DagsterRunStatus.STARTED)
    found = step(instance, tours=[tour(run=going.run_id)])
    assert found.request is None
    assert "tour running for 12 min, 9 published, 3 in flight" in found.line


def test_a_long_tour_is_followed_by_another(instance: DagsterInstance) -> None:
    """After an hour its successor is asked for, once; until that has begun, it goes on."""
    going = run(instance, DagsterRunStatus.STARTED)
    long = tour(run=going.run_id, started_seconds=3600.0)
    found = step(instance, tours=[long])
    assert found.request is not None
    assert found.request.run_key == f"harvest/0/7/{going.run_id}"
    assert "tour running for 60 min, 9 published, 3 in flight, a tour is asked for" in found.line
    next_ = run(instance, DagsterRunStatus.STARTING)
    assert step(instance, tours=[long]) == Step("leader, epoch 7, a tour is starting")
    begun = step(instance, tours=[tour(run=next_.run_id, started_seconds=1.0)])
    assert begun.request is None
    assert "tour running for 1.0 s" in begun.line


@pytest.mark.parametrize("state", [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING])
def test_a_tour_that_starts_is_waited_for(
    instance: DagsterInstance, state: DagsterRunStatus
) -> None:
    """A run that is on its way is not doubled."""
    run(instance, state)
    found = step(instance, tours=[tour(run="the one before", ended=True)])
    assert found == Step(f"leader, epoch 7, a tour is {state.value.lower()}")


def test_a_tour_whose_process_is_gone(instance: DagsterInstance) -> None:
    """Silence of a started run ends it in Dagster too, and another one is asked for."""
    gone = run(instance, DagsterRunStatus.STARTED)
    found = step(instance, tours=[tour(run=gone.run_id, seen_seconds=7.0)])
    assert found.request is not None
    left = instance.get_run_by_id(gone.run_id)
    assert left is not None
    assert left.status == DagsterRunStatus.FAILURE


def test_a_tour_that_was_terminated_is_started_anew(instance: DagsterInstance) -> None:
    """Terminate restarts the tour; the sensor's toggle is what ends leadership."""
    last = run(instance, DagsterRunStatus.CANCELED, **{EPOCH_TAG: "7"})
    found = step(instance, tours=[tour(ended=True)])
    assert found.request is not None
    assert found.request.run_key == f"harvest/0/7/{last.run_id}"


def test_a_run_of_another_term_does_not_count(instance: DagsterInstance) -> None:
    """A tour of the last leader that still ends does not keep ours from starting."""
    run(instance, DagsterRunStatus.STARTED, **{HOLDER_TAG: "them"})
    assert step(instance, tours=[]).request is not None


def test_a_run_of_another_table_does_not_count(instance: DagsterInstance) -> None:
    """Two code locations may have given one key to two harvests: neither ends the other's tours."""
    theirs = started(instance, **{TABLE_TAG: "elsewhere", HOLDER_TAG: "them"})
    assert step(instance, later=999, tours=[]).request is not None
    assert status_of(instance, theirs) == DagsterRunStatus.STARTED


def started(instance: DagsterInstance, **tags: str) -> dg.DagsterRun:
    """Leave a run that has said itself that it starts."""
    left = run(instance, DagsterRunStatus.STARTING, **tags)
    event = DagsterEvent(DagsterEventType.RUN_START.value, left.job_name)
    instance.report_dagster_event(event, left.run_id)
    return left


def status_of(instance: DagsterInstance, left: dg.DagsterRun) -> DagsterRunStatus:
    """Read what Dagster has of a run by now."""
    found = instance.get_run_by_id(left.run_id)
    assert found is not None
    return found.status


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([], id="it never began its tour"),
        pytest.param([tour(seen_seconds=61.0)], id="its tour is silent"),
        pytest.param([tour(run="another", started_seconds=61.0)], id="another tour goes on"),
    ],
)
def test_what_died_with_its_code_server_is_buried(
    instance: DagsterInstance, row: list[Any]
) -> None:
    """No dead run of another holder takes a place in the run queue for ever."""
    dead = [started(instance, **{HOLDER_TAG: "them"}) for _ in range(12)]
    assert step(instance, later=61, tours=row).request is not None
    assert {status_of(instance, each) for each in dead} == {DagsterRunStatus.FAILURE}


@pytest.mark.parametrize(
    ("seconds", "of"),
    [
        pytest.param(30, {"run": "another", "started_seconds": 999.0}, id="it begins"),
        pytest.param(999, {}, id="it drains"),
        pytest.param(999, {"run": "another", "started_seconds": 5.0}, id="it was fenced just now"),
        pytest.param(999, {"seen_seconds": 20.0}, id="it may have been paused"),
    ],
)
def test_what_may_live_is_not_buried(instance: DagsterInstance, seconds: float, of: Any) -> None:
    """The last leader's tour gets its time to settle, and its run to end."""
    last = started(instance, **{HOLDER_TAG: "them"})
    step(instance, later=seconds, tours=[tour(**{"run": last.run_id, **of})])
    assert status_of(instance, last) == DagsterRunStatus.STARTED


def test_no_number_of_runs_keeps_another_from_starting(instance: DagsterInstance) -> None:
    """Dagster starts no second run of a key: so no two requests have the same, under any epoch."""
    keys = set()
    for _ in range(12):
        request = step(instance, tours=[]).request
        assert request is not None
        keys.add(request.run_key)
        run(instance, DagsterRunStatus.CANCELED, **{EPOCH_TAG: "7"})
    assert len(keys) == 12


def test_failures_are_followed_by_pauses(instance: DagsterInstance) -> None:
    """The more tours failed in a row, the longer the pause; and it says where to look."""
    for _ in range(3):
        instance.report_run_failed(run(instance, DagsterRunStatus.STARTED), "no")
    found = step(instance, tours=[])
    assert found.request is None
    assert "the last 3 tours failed: the next starts in" in found.line
    assert step(instance, later=25, tours=[]).request is not None
