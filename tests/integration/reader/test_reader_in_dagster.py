"""A reader in Dagster: a sensor, a job, assets, checks and jobs of its verbs, and its tour."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import psycopg
import pytest

from harvest_dagster.orchestration import led_definitions
from harvest_dagster.reader import ReaderOptions
from harvest_dagster.reader.reader_yaml import reader_of
from harvest_dagster.reader.room import ROOM
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.described import facts_of, judged
from harvest_dagster.work.status import WorkStatus, read_work_status
from tests.support.reading import Shelf
from tests.support.waiting import until


@pytest.fixture
def options(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReaderOptions:
    """A reader.yaml."""
    monkeypatch.setenv("HARVEST_KAFKA", shelf.place.kafka["bootstrap.servers"])
    file = tmp_path / "reader.yaml"
    insert = "INSERT INTO seen (value) VALUES (%(value)s)"
    file.write_text(f"name: {shelf.name}\ntopics: {shelf.place.topic}\nstatement: {insert}\n")
    return ReaderOptions(file=str(file), postgres=shelf.url)


def test_dagster_loads_it(options: ReaderOptions) -> None:
    """All that led things have, and what is its own."""
    definitions = led_definitions("reader", options, key="totals")
    dg.Definitions.validate_loadable(definitions)
    jobs = {job.name for job in definitions.get_repository_def().get_all_jobs()}
    assert jobs >= {"totals_tour", "totals_resign", "totals_reset"}
    graph = definitions.resolve_asset_graph()
    assert dg.AssetKey(["totals", "reader"]) in graph.get_all_asset_keys()
    assert {key.name for key in graph.asset_check_keys} == {"one_leader", "no_lag_stuck"}


def status(shelf: Shelf) -> WorkStatus:
    """Read how it does."""
    with psycopg.connect(shelf.place.postgres) as connection:
        return read_work_status(connection, shelf.name, last_events=10)


def test_its_tour(shelf: Shelf, options: ReaderOptions) -> None:
    """A process of its own reads, and tells what it did, and how much waits."""
    led = reader_of(options)
    shelf.lease()
    shelf.write("A1O", "A1O", "A2O")
    tour = Delegate(led, 0, "run-1")
    assert tour.begin() == {"partitions": 4}
    until(lambda: status(shelf).done == 2)
    found = status(shelf)
    assert facts_of(ROOM, led, found)["reader"]["doubles"] == 1
    assert all(verdict.passed for verdict in judged(ROOM, led, found))
    tour.close(5)
    shelf.has_seen("A1O", "A2O")


def test_one_that_is_stuck(shelf: Shelf, options: ReaderOptions) -> None:
    """Where records wait and nothing is applied, the check fails; a short while is none."""
    shelf.lease()
    led = reader_of(options)
    shelf.write("A1O", "A2O")
    with psycopg.connect(shelf.url) as blocking:
        blocking.execute("LOCK TABLE seen")
        tour = Delegate(led, 0, "run-1")
        tour.begin()
        until(lambda: any(row.figure("lag") for row in status(shelf).tours))
        found = status(shelf)
    assert [v.passed for v in judged(ROOM, led, found, 30.0)] == [True, True]
    failed = [v for v in judged(ROOM, led, found, 100.0) if not v.passed]
    assert [(v.check, v.says) for v in failed] == [
        ("no_lag_stuck", "2 records waiting, nothing applied for 100 s")
    ]
    tour.close(5)
