from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.cli.demo_dagster import wait_for
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from tests.support.command import Harvest


def test_no_kafka(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """With a code location, one's own PostgreSQL and no Kafka it fails before it makes anything."""
    Path("workspace.yaml").touch()
    failed = harvest("demo")
    assert failed.returncode == 1
    assert failed.stderr.startswith("harvest: no Kafka is configured: set HARVEST_KAFKA")
    assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)


def test_it_gives_up() -> None:
    """What was waited for in vain is told."""
    said = "^gave up after 0 s waiting for the outbox to empty: is this machine busy"
    with pytest.raises(EmbeddedError, match=said):
        wait_for(lambda: False, "the outbox to empty", seconds=0.1)
