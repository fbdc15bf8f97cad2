"""Whether a harvest's memory grows under load that lasts.

    python -m benchmarks.memory [--minutes N] [--rate N] [--json]

A steady stream of messages is committed, 100 at a time; the harvest is a process of its own, whose
resident memory is looked at every five seconds. That some lag behind in the end would tell that the
load was more than the machine carries.
"""

from __future__ import annotations

import statistics
import time

import psutil
import psycopg

from benchmarks.place import Place, place
from benchmarks.report import Median, Result, arguments, report
from benchmarks.shards import process
from harvest_dagster import stash

_LOOK_SECONDS, _LOOKS_A_MINUTE = 5, 12
_AT_ONCE = 100


def main() -> None:
    """Measure."""
    given = arguments(__doc__, minutes=10, rate=3000).parse_args()
    with place() as here, process(here, 0, 1) as harvest:
        looked = _load(here, psutil.Process(harvest.pid), given.minutes * 60, given.rate)
        behind = _behind(here)
    report(f"memory at {given.rate:,} messages a second", _told(looked, behind), as_json=given.json)


def _load(here: Place, harvest: psutil.Process, seconds: int, rate: int) -> list[float]:
    """Commit at a steady rate for so long; tell what memory was held meanwhile, in MB."""
    looked: list[float] = []
    start, number = time.monotonic(), 0
    with psycopg.connect(here.url) as connection:
        while len(looked) < seconds // _LOOK_SECONDS:
            stash(connection, [here.message(number + n, 1000, 100) for n in range(_AT_ONCE)])
            connection.commit()
            number += _AT_ONCE
            if time.monotonic() - start >= _LOOK_SECONDS * (len(looked) + 1):
                looked.append(harvest.memory_info().rss / 2**20)
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
    return looked


def _behind(here: Place) -> int:
    with psycopg.connect(here.url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox").fetchone()
    return int(row[0]) if row else 0


def _told(looked: list[float], behind: int) -> list[Result]:
    starts = range(0, len(looked) - _LOOKS_A_MINUTE + 1, _LOOKS_A_MINUTE)
    minutes = [Median.of(looked[start : start + _LOOKS_A_MINUTE]) for start in starts]
    first, last = minutes[0], minutes[-1]
    hours = [_LOOK_SECONDS * place / 3600 for place in range(len(looked))]
    settled = slice(min(_LOOKS_A_MINUTE, len(looked) - 2), None)
    slope = statistics.linear_regression(hours[settled], looked[settled]).slope
    named = [Result(f"minute {place}", each, "MB") for place, each in enumerate(minutes, 1)]
    of = named[0].name
    return [
        *named,
        Result("the last minute", last, "MB", of, last / first, "< 1.1"),
        Result("growth after the first minute", slope, "MB an hour"),
        Result("messages that wait in the end", behind, "", target="< 10000"),
    ]


if __name__ == "__main__":
    main()
