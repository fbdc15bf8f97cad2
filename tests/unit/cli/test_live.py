from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from harvest_dagster.cli.live import Live, LiveFigures
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.leader_events import MeterRead, Stats
from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.work.led import Led
from harvest_dagster.work.runner import Runner

LEASE = Lease("outbox", 0, 7, uuid4(), "host:1:ab")
STATS = Stats(
    shard=0,
    published=100,
    purged=90,
    remarked=0,
    parked=0,
    in_flight=340,
    rate=12_031.4,
    backlog=1234,
    oldest_seconds=1.2,
)


class Leads(Runner):
    """A runner that leads the shards that the test says, under epoch 7, without any servers."""

    def __init__(self, led: Led, shards: list[int]) -> None:
        super().__init__(ROOM, led)
        self._shards = shards

    @property
    def shards(self) -> list[int]:
        """What the test said."""
        return self._shards

    def lease(self, shard: int) -> Lease | None:
        """The lease of the tests, for what is led."""
        return LEASE if shard in self._shards else None


def leading(shards: int, leads: list[int]) -> Harvest:
    """A harvest that leads some of its shards."""
    config = HarvestConfig.model_validate(
        {
            "base_kafka": {"bootstrap.servers": "localhost:1"},
            "postgres": "host=localhost",
            "shards": shards,
        }
    )
    harvest = Harvest(config)
    harvest.runner = Leads(harvest.runner.led, leads)
    harvest.backlog = Backlog(1234, 1.2, exact=True)
    return harvest


@pytest.fixture
def harvest() -> Harvest:
    """A harvest that leads its only shard."""
    return leading(1, [0])


def logged_of(
    caplog: pytest.LogCaptureFixture, harvest: Harvest, *events: Any, **how: Any
) -> list[str]:
    """What is logged of events."""
    live = Live(harvest, logs_figures=how.get("logs_figures", True))
    with caplog.at_level(logging.INFO, "harvest_dagster"):
        for event in events:
            live.hear(event)
    return caplog.messages


def test_figures(caplog: pytest.LogCaptureFixture, harvest: Harvest) -> None:
    """Figures are logged when they are read."""
    said = "leader, epoch 7 | 12,031/s | backlog 1,234 | 340 in flight | oldest 1.2 s"
    assert logged_of(caplog, harvest, MeterRead(STATS)) == [said]


def test_same_figures(caplog: pytest.LogCaptureFixture, harvest: Harvest) -> None:
    """Figures that have not changed are not logged again, however old the oldest record gets."""
    older = MeterRead(replace(STATS, oldest_seconds=9.0, rate=0.0))
    assert len(logged_of(caplog, harvest, MeterRead(STATS), older, older)) == 1
    caplog.clear()
    moved = MeterRead(replace(STATS, published=101))
    assert len(logged_of(caplog, harvest, MeterRead(STATS), older, moved)) == 2


def test_nothing_to_do(caplog: pytest.LogCaptureFixture, harvest: Harvest) -> None:
    """Of an outbox in which nothing waits nothing is logged."""
    nothing = replace(STATS, published=0, in_flight=0, backlog=0)
    assert logged_of(caplog, harvest, MeterRead(nothing)) == []


def test_figures_that_are_shown(caplog: pytest.LogCaptureFixture, harvest: Harvest) -> None:
    """Where a live line shows the figures they are not logged as well."""
    assert logged_of(caplog, harvest, MeterRead(STATS), logs_figures=False) == []


def test_line(harvest: Harvest) -> None:
    """The live line has the same figures, as they are now."""
    line = Live(harvest, logs_figures=False).line()
    assert line == "leader, epoch 7 | 0/s | backlog 1,234 | 0 in flight | oldest 1.2 s"


def test_line_before_the_backlog_was_read(harvest: Harvest) -> None:
    """What is not known yet is not shown as nothing."""
    harvest.backlog = None
    assert "| backlog ? | 0 in flight | oldest ?" in Live(harvest, logs_figures=False).line()


def test_standby() -> None:
    """Who does not lead stands by."""
    harvest = leading(1, [])
    assert Live(harvest, logs_figures=False).line() == "standby"
    assert LiveFigures(harvest.runner).line() == "standby"


def test_shards() -> None:
    """Of several shards those are shown that it leads."""
    line = Live(leading(4, [0, 2]), logs_figures=False).line()
    assert line.startswith("leader of shards 0, 2 | 0/s")


def test_figures_of_any_runner(harvest: Harvest) -> None:
    """Of whatever else is led the line has every figure, by its name."""
    line = LiveFigures(harvest.runner).line()
    assert line.startswith("leader, epoch 7 | 0/s | 0 published, 0 purged, ")
    assert line.endswith(", 0 in flight")


def test_terms(caplog: pytest.LogCaptureFixture, harvest: Harvest) -> None:
    """What becomes of the leadership is logged, whoever observes it."""
    runner = Runner(ROOM, harvest.runner.led)
    with caplog.at_level(logging.INFO, "harvest_dagster"):
        runner.revoked(LEASE)
        runner.fenced(LEASE)
    assert caplog.messages == ["shard 0: handed over", "shard 0: lost"]
