"""What a runner is doing, in one line: of a harvest its own, of all else one of its figures."""

from __future__ import annotations

import logging

from harvest_dagster.cli.console import Console
from harvest_dagster.clock import Deadline, now
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.leader_events import Event, MeterRead, Stats
from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.work.led import added, done
from harvest_dagster.work.runner import Runner

_LOG = logging.getLogger("harvest_dagster.run")
_LOG_SECONDS = 5.0


class Rate:
    """How fast a count grows, since it was last asked for."""

    def __init__(self) -> None:
        self._then, self._count = now(), 0

    def of(self, count: int) -> float:
        """Return how many more a second."""
        then, before = self._then, self._count
        self._then, self._count = now(), count
        return (count - before) / max(self._then - then, 1e-6)


class Live:
    """Watches one harvest; `show` is the main thread's, `hear` the harvest's own.

    Figures are logged unless there is a line that shows them.
    """

    def __init__(self, harvest: Harvest, *, logs_figures: bool) -> None:
        self._harvest, self._logs_figures = harvest, logs_figures
        self._rate = Rate()
        self._last: dict[int, tuple[int, ...]] = {}

    def show(self, console: Console) -> None:
        """Rewrite the line, where there is one."""
        if console.is_live:
            console.show(self.line())

    def total(self) -> str:
        """Return what was done in all."""
        return f"{self._sum('published'):,} published, {self._sum('parked'):,} parked"

    def line(self) -> str:
        """Return the line as it stands now; the rate is since it was last asked for."""
        harvest, rate = self._harvest, self._rate.of(self._sum("published"))
        if not harvest.shards:
            return "standby"
        return _line(leads(harvest.runner), rate, harvest.in_flight_records, harvest.backlog)

    def hear(self, event: Event) -> None:
        """Log the figures that the harvest has read, while they change."""
        match event:
            case MeterRead(stats=stats) if self._logs_figures and self._has_moved(stats):
                leader, backlog = leads(self._harvest.runner), self._harvest.backlog
                _LOG.info(_line(leader, stats.rate, stats.in_flight, backlog))

    def _sum(self, figure: str) -> int:
        return figures(self._harvest.runner)[figure]

    def _has_moved(self, stats: Stats) -> bool:
        read = (stats.published, stats.parked, stats.in_flight, stats.backlog)
        before = self._last.get(stats.shard, (0, 0, 0, 0))
        self._last[stats.shard] = read
        return read != before


class LiveFigures:
    """Watches any runner, by the figures of its works."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self._rate = runner, Rate()
        self._logged: dict[str, int] = {}
        self._pause = Deadline(_LOG_SECONDS)

    def show(self, console: Console) -> None:
        """Rewrite the line; where there is none, log it now and then, while figures change."""
        if console.is_live:
            console.show(self.line())
        elif self._pause.over and (known := figures(self._runner)) != self._logged:
            self._logged, self._pause = known, Deadline(_LOG_SECONDS)
            _LOG.info("%s", self.line())

    def line(self) -> str:
        """Return the line as it stands now; the rate is since it was last asked for."""
        known = figures(self._runner)
        rate = self._rate.of(done(self._runner.led, known))
        if not self._runner.shards:
            return "standby"
        return f"{leads(self._runner)} | {rate:,.0f}/s | {_listed(known)}"

    def total(self) -> str:
        """Return what was done in all."""
        return _listed(figures(self._runner))


def leads(runner: Runner) -> str:
    """Return which shards a runner leads, and under which epoch if there is but one."""
    if runner.led.candidate.shards == 1:
        lease = runner.lease(0)
        return f"leader, epoch {lease.epoch if lease else '-'}"
    return "leader of shards " + ", ".join(map(str, runner.shards))


def figures(runner: Runner) -> dict[str, int]:
    """Return what a runner has done for all its shards, and what is so just now."""
    each = [runner.figures(shard) for shard in range(runner.led.candidate.shards)]
    return {name: sum(known[name] for known in each) for name in added(runner.led, {}, {})}


def _listed(known: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in known.items())


def _line(leads: str, rate: float, in_flight: int, backlog: Backlog | None) -> str:
    waiting = oldest = "?"
    if backlog is not None:
        waiting, oldest = f"{backlog.records:,}", f"{backlog.oldest_seconds:,.1f} s"
    return (
        f"{leads} | {rate:,.0f}/s | backlog {waiting} | {in_flight:,} in flight | oldest {oldest}"
    )
