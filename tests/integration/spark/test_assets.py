"""The shop's assets, as `definitions.py` has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import Servers
from tests.support.paths import PROGRAMS, ROOT

if TYPE_CHECKING:
    from tests.support.spark import Rows

SCRIPT = PROGRAMS / "spark_days.py"
FILES = {"dagster/row_count", "seconds", "path", "sample"}
MESSAGES = {"stashed", "seconds", "outbox", "ids", "sample", "topic"}


@pytest.mark.long
def test_a_day_twice(database: str, servers: Servers, rows: Rows, tmp_path: Path) -> None:
    """A day materialized again tells no payment twice; each asset tells what it has done."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "lake"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HARVEST_POSTGRES": database,
            "HARVEST_KAFKA": servers.kafka,
        },
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    payments = (
        "SELECT count(*), count(DISTINCT kafka_value) FROM outbox WHERE kafka_topic = 'payments'"
    )
    ((count, different),) = rows(payments)
    assert found["feeds"] == [count, 0]
    assert count == different > 0
    told = {name: set(metadata) for name, metadata in found["told"].items()}
    for name in ("till_orders", "till_payments", "clean_orders"):
        assert told[name] >= FILES
    assert told["daily_sales"] >= (MESSAGES | {"rows in daily_sales", "table"}) - {"sample"}
    assert told["large_orders"] >= MESSAGES - {"sample"}
    assert told["payment_feed"] >= MESSAGES - {"ids"}
