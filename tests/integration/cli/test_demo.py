from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.embedded import Servers

if TYPE_CHECKING:
    from tests.support.command import Harvest


@pytest.fixture(autouse=True)
def _with_ui(monkeypatch: pytest.MonkeyPatch) -> None:
    """A UI that could be shown, and in which nobody leads."""
    monkeypatch.setattr(sys.modules["harvest_dagster.cli.demo"], "can_show", lambda: True)
    monkeypatch.setattr(
        "harvest_dagster.embedded.background_ui.start", lambda *_: ("http://ui", None, None)
    )
    monkeypatch.setattr("harvest_dagster.cli.demo_dagster._WAIT_SECONDS", 0.1)


def test_no_kafka(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """With a PostgreSQL of one's own and no Kafka it fails before it has made anything."""
    failed = harvest("demo")
    assert failed.returncode == 1
    assert failed.stderr.startswith("harvest: no Kafka is configured: set HARVEST_KAFKA")
    assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)


def test_it_gives_up(harvest: Harvest, servers: Servers) -> None:
    """What was waited for in vain is told."""
    failed = harvest("demo", HARVEST_KAFKA=servers.kafka)
    assert failed.returncode == 1
    assert failed.stderr == (
        "harvest: gave up after 0 s waiting for the outbox to empty; see `harvest status`\n"
    )
