"""Whether a backlog's size, or a snapshot that is held, makes the harvest slower.

    python -m benchmarks.growth [--records N] [--rounds N] [--json]

Beside the rate it tells the mark time: what the marker takes, at work, to read the next records and
to write their claim. The backlog of 10M is drained once, since it takes longest and is steadiest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import ClassVar

import psycopg

from benchmarks.harvest import drain, placed
from benchmarks.place import Place
from benchmarks.report import Median, Result, arguments, medians, report
from harvest_dagster.harvest import rounds
from harvest_dagster.harvest.batch import Row
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.mark import Marker
from harvest_dagster.harvest.stage import Round

_HELD = "under an old snapshot"


class TimedMarker(Marker):
    """Notes how long each pass takes by which something is marked."""

    passes: ClassVar[list[float]] = []
    _began = 0.0

    def _next_rows(self, records: int, size: int) -> list[Row]:
        self._began = time.perf_counter()
        return super()._next_rows(records, size)

    def _hand_on(self, rows: list[Row], round_: Round) -> None:
        super()._hand_on(rows, round_)
        self.passes.append(time.perf_counter() - self._began)


class Drains:
    """Drains backlogs; remembers each one's mark time."""

    def __init__(self) -> None:
        self.mark_ms: dict[str, list[float]] = {}

    def of(
        self, name: str, records: int, run: Callable[[Place, int], float]
    ) -> Callable[[], float]:
        """Tell how to drain so many, under a name."""

        def drained(here: Place) -> float:
            TimedMarker.passes.clear()
            rate = run(here, records)
            passed = statistics.median(TimedMarker.passes) * 1000
            self.mark_ms.setdefault(name, []).append(passed)
            return rate

        return placed(drained, records)


def main() -> None:
    """Measure all."""
    given = arguments(__doc__, rounds=2, records=1_000_000).parse_args()
    settle_heap()
    rounds.Marker = TimedMarker  # type: ignore[attr-defined]
    report("growth", _measure(given.rounds, given.records), as_json=given.json)


def _measure(turns: int, records: int) -> list[Result]:
    drains, of, small, large = Drains(), *map(_of, (records, records // 10, records * 10))
    several: dict[str, Callable[[], float]] = {
        small: drains.of(small, records // 10, _drain),
        of: drains.of(of, records, _drain),
        _HELD: drains.of(_HELD, records, _drain_under_snapshot),
    }
    rates = medians(turns, several)
    rates |= medians(1, {large: drains.of(large, records * 10, _drain)})
    times = {name: Median.of(samples) for name, samples in drains.mark_ms.items()}
    return [
        Result(small, rates[small], "/s", of, rates[small] / rates[of]),
        Result(of, rates[of], "/s"),
        Result(large, rates[large], "/s", of, rates[large] / rates[of], ">= 0.9"),
        Result(_HELD, rates[_HELD], "/s", of, rates[_HELD] / rates[of], ">= 0.8"),
        Result(f"mark time, {small}", times[small], "ms", of, times[small] / times[of]),
        Result(f"mark time, {of}", times[of], "ms"),
        Result(f"mark time, {large}", times[large], "ms", of, times[large] / times[of], "< 1.1"),
        Result(f"mark time, {_HELD}", times[_HELD], "ms", of, times[_HELD] / times[of]),
    ]


def _of(records: int) -> str:
    return f"backlog of {records:,}"


def _drain(here: Place, records: int) -> float:
    return drain(here, "exactly_once", records)


def _drain_under_snapshot(here: Place, records: int) -> float:
    with psycopg.connect(here.url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT count(*) FROM harvest.lease")
        return _drain(here, records)


if __name__ == "__main__":
    main()
