"""What a harvest is doing, in one line."""

from __future__ import annotations

import logging
import time

from harvest_dagster.harvest.events import (
    Event,
    LeaderFenced,
    LeaderRefreshed,
    LeaderRevoked,
    MeterRead,
    Stats,
)
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.meter import Backlog

_LOG = logging.getLogger("harvest_dagster.reap")


class Live:
    """Watches one harvest; `line` is the main thread's, `told` the harvest's own.

    Figures are logged unless there is a line that shows them.
    """

    def __init__(self, harvest: Harvest, *, logs_figures: bool) -> None:
        self._harvest, self._logs_figures = harvest, logs_figures
        self._then, self._published = time.monotonic(), 0
        self._last: dict[int, tuple[int, ...]] = {}

    def line(self) -> str:
        """The line as it stands now; the rate is since it was last asked for."""
        harvest, now = self._harvest, time.monotonic()
        published = sum(harvest.totals(shard).published for shard in range(harvest.config.shards))
        rate = (published - self._published) / max(now - self._then, 1e-6)
        self._then, self._published = now, published
        backlog = harvest.backlog
        if not harvest.shards:
            return "standby"
        return _line(self._leads(), rate, harvest.in_flight_records, backlog)

    def told(self, event: Event) -> None:
        """Log what the harvest tells and does not log itself; figures while they change."""
        match event:
            case MeterRead(stats=stats) if self._logs_figures and self._has_moved(stats):
                _LOG.info(_line(self._leads(), stats.rate, stats.in_flight, self._harvest.backlog))
            case LeaderRefreshed(shard=shard, epoch=epoch):
                _LOG.info("shard %d: leads on, under epoch %d", shard, epoch)
            case LeaderRevoked(shard=shard):
                _LOG.info("shard %d: handed over", shard)
            case LeaderFenced(shard=shard):
                _LOG.warning("shard %d: lost", shard)

    def _leads(self) -> str:
        harvest = self._harvest
        epochs = {shard: harvest.epoch(shard) for shard in harvest.shards}
        if harvest.config.shards == 1:
            return f"leader, epoch {epochs.get(0) or '-'}"
        return "leader of shards " + ", ".join(map(str, epochs))

    def _has_moved(self, stats: Stats) -> bool:
        figures = (stats.published, stats.parked, stats.in_flight, stats.backlog)
        before = self._last.get(stats.shard, (0, 0, 0, 0))
        self._last[stats.shard] = figures
        return figures != before


def _line(leads: str, rate: float, in_flight: int, backlog: Backlog | None) -> str:
    waiting = oldest = "?"
    if backlog is not None:
        waiting, oldest = f"{backlog.records:,}", f"{backlog.oldest_seconds:,.1f} s"
    return (
        f"{leads} | {rate:,.0f}/s | backlog {waiting} | {in_flight:,} in flight | oldest {oldest}"
    )
