"""Something that is led and is no harvest: one class, one description, one line among the rooms."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
import pytest

from harvest_dagster.errors import ConfigError, FencedError, HarvestStateError
from harvest_dagster.ledger import lease as leases
from harvest_dagster.orchestration import HarvestTranslator, led_definitions
from harvest_dagster.orchestration.candidacy import candidacy_of
from harvest_dagster.orchestration.operate import op_name
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.metrics import served
from harvest_dagster.work.room import rooms
from harvest_dagster.work.runner import Runner
from harvest_dagster.work.status import WorkStatus, read_work_status
from tests.support.counter.room import ROOM, Counter, CounterOptions
from tests.support.waiting import until

Count = Callable[[], int]
KEY = "tally"


def status(counter: Counter) -> WorkStatus:
    """Read how it does."""
    with psycopg.connect(counter.postgres_url) as connection:
        return read_work_status(connection, counter.name, last_events=10)


@contextmanager
def running(counter: Counter) -> Iterator[Runner]:
    """Let it be led in this process."""
    runner = Runner(ROOM, counter)
    runner.start()
    try:
        yield runner
    finally:
        runner.stop(10)


@contextmanager
def held(counter: Counter) -> Iterator[leases.Lease]:
    """Have its lease."""
    with psycopg.connect(counter.postgres_url, autocommit=True) as connection:
        lease = leases.take(connection, counter.name, 0, "us", 60, word=ROOM.word)
        assert lease is not None
        yield lease


def test_it_is_led_and_drained(counter: Counter, count: Count) -> None:
    """Who comes first leads it; what ends in good order has written all that it says."""
    with running(counter) as runner:
        until(lambda: count() > 3)
        assert runner.leads(0)
    assert count() == runner.figures(0)["counted"]
    found = status(counter)
    assert (found.leases[0].word, found.leases[0].expired) == (ROOM.word, True)
    assert [event.kind for event in found.events] == ["revoked", "acquired"]


def test_a_stale_term_writes_nothing(counter: Counter, count: Count) -> None:
    """A work whose lease went on is fenced by its first write, and ends."""
    with held(counter) as lease, psycopg.connect(counter.postgres_url) as connection:
        stale = counter.work(lease, lambda: True, lambda _lease: None)
        leases.acquire(connection, counter.name, 0, "them", 60, word=ROOM.word)
        connection.commit()
        with pytest.raises(FencedError):
            stale.run()
    assert (count(), stale.figures["counted"]) == (0, 0)


def test_it_is_seen_where_it_runs_by_itself(counter: Counter, count: Count) -> None:
    """A tour in a process of its own is seen in its status, with its figures."""
    with held(counter):
        tour = Delegate(counter, 0, "run-1")
        tour.begin()
        until(lambda: status(counter).done > 3)
        (row,) = status(counter).tours
        assert (row.run, row.alive) == ("run-1", True)
        tour.close(5)
        assert status(counter).done == count()


def test_its_metrics(counter: Counter, count: Count) -> None:
    """Its figures are Prometheus' too, and its runner is sound."""
    with running(counter) as runner, served(runner, "127.0.0.1:0") as where:
        until(lambda: count() > 3)
        with urllib.request.urlopen(f"http://{where}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        with urllib.request.urlopen(f"http://{where}/health", timeout=5) as answer:
            assert answer.status == 200
    assert "# TYPE harvest_counted_total counter" in text
    assert 'harvest_leader{name="count",shard="0"} 1.0' in text


class Ours(HarvestTranslator):
    """Another group, and other keys."""

    def asset_key(self, key: str, asset: str) -> dg.AssetKey:
        """Return a key below ours."""
        return dg.AssetKey(["ours", key, asset])

    def group_name(self, key: str) -> str:
        """Return our group."""
        return f"our_{key}"


@pytest.fixture
def definitions(counter: Counter) -> dg.Definitions:
    """All of it for Dagster, by the word of its room."""
    return led_definitions("counter", options(counter), key=KEY)


def options(counter: Counter) -> CounterOptions:
    """What its room asks for."""
    return CounterOptions(name=counter.name, postgres=counter.postgres_url)


def test_dagster_loads_it(definitions: dg.Definitions) -> None:
    """It has a sensor, a tour's job, jobs of its verbs, assets, and checks."""
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    assert {job.name for job in repository.get_all_jobs()} >= {
        "tally_tour",
        "tally_resign",
        "tally_set",
    }
    graph = definitions.resolve_asset_graph()
    lease = dg.AssetKey([KEY, "lease"])
    assert graph.get(lease).parent_keys == {dg.AssetKey([KEY, "counter"])}
    assert {key.name for key in graph.asset_check_keys} == {"one_leader", "moves"}


def test_a_translator(counter: Counter) -> None:
    """Its assets are called and grouped as the translator says, and so are its checks."""
    made = led_definitions(ROOM, options(counter), key=KEY, translator=Ours())
    graph = made.resolve_asset_graph()
    lease = dg.AssetKey(["ours", KEY, "lease"])
    assert graph.get(lease).group_name == "our_tally"
    assert dg.AssetCheckKey(lease, "one_leader") in graph.asset_check_keys


def test_a_room_that_is_none(counter: Counter) -> None:
    """What is not known is refused, with what is."""
    assert counter.name
    with pytest.raises(ConfigError, match="counter"):
        led_definitions("clock", key=KEY)
    assert ROOM in rooms()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster that keeps nothing."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def tick(definitions: dg.Definitions, instance: dg.DagsterInstance, cursor: str | None) -> Any:
    """Let its sensor tick once."""
    sensor = definitions.resolve_sensor_def(f"{KEY}_leader")
    with dg.build_sensor_context(
        instance=instance, resources=definitions.resources, sensor_name=sensor.name, cursor=cursor
    ) as context:
        return sensor.evaluate_tick(context)


def test_dagster_leads_it(
    counter: Counter, count: Count, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    """Its sensor leads and asks for a tour, which counts; it reports what it sees."""
    ticks: list[Any] = [tick(definitions, instance, None)]

    def asks() -> bool:
        ticks.append(tick(definitions, instance, ticks[-1].cursor))
        return bool(ticks[-1].run_requests)

    until(asks, what="a tour is asked for")
    (request,) = ticks[-1].run_requests
    job = definitions.resolve_job_def(f"{KEY}_tour")
    result: list[Any] = []
    config = {"ops": {"work": {"config": {"shard": 0, "minutes": 0.05}}}}
    assert request.run_config == {"ops": {"work": {"config": {"shard": 0}}}}
    run = threading.Thread(
        target=lambda: result.append(
            job.execute_in_process(run_config=config, tags=request.tags, instance=instance)
        )
    )
    run.start()
    until(lambda: status(counter).done > 3)
    seen = tick(definitions, instance, ticks[-1].cursor)
    run.join()
    assert "tour running" in seen.skip_message
    assert "counted" in seen.skip_message
    assert result[0].success
    assert status(counter).leases[0].word == ROOM.word
    assert count() == status(counter).done
    events = [event for each in [*ticks, seen] for event in each.asset_events]
    assert {event.asset_key.path[1] for event in events} == {"counter", "lease"}
    assert {e.check_name for e in events if isinstance(e, dg.AssetCheckEvaluation)} == {
        "one_leader",
        "moves",
    }
    with pytest.raises(HarvestStateError, match="both lead count"):
        candidacy_of(ROOM, counter, "another_leader")
    candidacy_of(ROOM, counter, f"{KEY}_leader").stop()


def test_its_verb_and_its_checks(
    count: Count, definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    """An operator's job does what its verb says; a check looks at that moment."""
    verb = op_name(Names(KEY), "set")
    ran = definitions.resolve_job_def(f"{KEY}_set").execute_in_process(
        run_config={"ops": {verb: {"config": {"number": 7}}}}, instance=instance
    )
    assert ran.success
    assert count() == 7
    checked = dg.materialize(
        [*(definitions.assets or ()), *(definitions.asset_checks or ())],  # type: ignore[list-item]
        resources=definitions.resources,
        instance=instance,
        selection=dg.AssetSelection.checks_for_assets(dg.AssetKey([KEY, "lease"])),
    )
    (found,) = checked.get_asset_check_evaluations()
    assert (found.check_name, found.passed) == ("one_leader", False)
