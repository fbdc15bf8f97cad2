"""The code location that people run: it loads, and its asset stashes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from pyspark.sql import SparkSession

from harvest_dagster.embedded import Servers
from tests.support.paths import ROOT

LOCATION = {"assets", "definitions", "resources", "sensors"}


def test_the_location_loads(tmp_path: Path) -> None:
    """What `dagster dev` loads in the root is sound, also where no server runs yet."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dagster"), "definitions", "validate"],
        cwd=ROOT,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def location(
    database: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.Definitions]:
    """What it defines, on this test's database and in its directory."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("HARVEST_POSTGRES", database)
    monkeypatch.setenv("HARVEST_KAFKA", servers.kafka)
    for name in [name for name in sys.modules if name.split(".")[0] in LOCATION]:
        monkeypatch.delitem(sys.modules, name)  # so that the lake is in this test's directory
    from definitions import defs  # noqa: PLC0415 - its path is known from here on

    yield defs
    if session := SparkSession.getActiveSession():
        session.stop()


@pytest.fixture
def job(location: dg.Definitions) -> dg.JobDefinition:
    """All of its assets."""
    return location.resolve_implicit_global_asset_job_def()


@pytest.fixture
def instance(tmp_path: Path) -> dg.DagsterInstance:
    """An instance of Dagster's that keeps its files in this test's directory."""
    return dg.DagsterInstance.ephemeral(tempdir=str(tmp_path))


def test_every_launchpad_shows_what_may_be_filled_in(location: dg.Definitions) -> None:
    """Of no job does it show the resources, which were set in code."""
    jobs = [job for job in location.get_repository_def().get_all_jobs() if not job.is_asset_job]
    assert "harvest_tour" in {job.name for job in jobs}
    for job in jobs:
        assert job.run_config is not None
        assert [*job.run_config] == ["ops"], job.name
    tour = location.resolve_job_def("harvest_tour")
    given = {"shard": 0, "minutes": None}
    assert tour.run_config == {"ops": {"mark": {"config": given}}}
    dg.validate_run_config(tour, tour.run_config)


@pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run")  # Dagster's own use of it
def test_orders_stashes_a_message_for_each_row(
    job: dg.JobDefinition, instance: dg.DagsterInstance, connection: psycopg.Connection[Any]
) -> None:
    """Materialising `orders` writes rows and messages, and reports how many."""
    result = job.execute_in_process(
        run_config={"ops": {"orders": {"config": {"count": 30, "customers": 3}}}},
        instance=instance,
        asset_selection=[dg.AssetKey("orders")],
    )

    (materialized,) = result.asset_materializations_for_node("orders")
    assert materialized.metadata["stashed"].value == 30
    rows = connection.execute("SELECT count(*), count(DISTINCT kafka_key) FROM outbox").fetchone()
    orders = connection.execute("SELECT count(*) FROM shop_order").fetchone()
    assert (rows, orders) == ((30, 3), (30,))


SALES = ("till_orders", "till_payments", "clean_orders", "daily_sales", "large_orders")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of Spark's and Dagster's own
def test_a_day_of_sales(
    job: dg.JobDefinition, instance: dg.DagsterInstance, connection: psycopg.Connection[Any]
) -> None:
    """Spark's assets of a day write rows with their messages, once however often they are run."""
    for turn in range(2):
        result = job.execute_in_process(
            partition_key="2026-10-02",
            run_config={"ops": {"tills": {"config": {"orders": 2000, "customers": 20}}}},
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in SALES],
        )
        (sales,) = result.asset_materializations_for_node("daily_sales")
        assert sales.metadata["stashed"].value == (0 if turn else 20)
        assert ("repeated" in sales.metadata) == bool(turn)
    for _ in range(2):
        result = job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey("payment_feed")],
        )
    rows = connection.execute(
        "SELECT kafka_topic, count(*), count(DISTINCT kafka_value) FROM outbox GROUP BY 1"
    ).fetchall()
    counts = {topic: count for topic, count, _ in rows}
    assert [count for _, count, _ in rows] == [different for _, _, different in rows]
    assert counts["daily-sales"] == 20
    assert connection.execute("SELECT count(*) FROM daily_sales").fetchone() == (20,)
    assert counts["large-orders"] > 0
    assert counts["payments"] > 1000
