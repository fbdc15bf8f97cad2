"""The code location that people run: it loads, and its asset stashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest

from harvest_dagster.embedded import Servers

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run")  # Dagster's own use of it
def test_orders_stashes_a_message_for_each_row(
    database: str,
    servers: Servers,
    connection: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Materialising `orders` writes rows and messages, and reports how many."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("HARVEST_POSTGRES", database)
    monkeypatch.setenv("HARVEST_KAFKA", servers.kafka)
    from definitions import defs  # noqa: PLC0415 - its path is known from here on

    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        run_config={"ops": {"orders": {"config": {"count": 30, "customers": 3}}}},
        instance=dg.DagsterInstance.ephemeral(),
    )

    (materialized,) = result.asset_materializations_for_node("orders")
    assert materialized.metadata["stashed"].value == 30
    rows = connection.execute("SELECT count(*), count(DISTINCT kafka_key) FROM outbox").fetchone()
    orders = connection.execute("SELECT count(*) FROM shop_order").fetchone()
    assert (rows, orders) == ((30, 3), (30,))
