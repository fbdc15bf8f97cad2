"""How fast the harvest drains a backlog, as ratios to loops without guarantees, in one run.

    python -m benchmarks.harvest [--records N] [--rounds N] [--json]

It uses the servers that harvest_dagster's settings name (`harvest dev up` starts them); each
contender has a database and topics of its own, which are dropped afterwards. A contender's rate is
taken from its first mark to its last purge.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import psycopg

from benchmarks.ceilings import loop, raw_copy_out, raw_produce
from benchmarks.place import Place, place
from benchmarks.report import Median, Result, arguments, medians, peak_memory, report
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger import lease as leases

_PLAIN = "plain loop, in transactions"
_HOT = 2000
"""At least once sends a hot key's records one by one, so fewer of them tell its rate."""
_FEWER = {"max_in_flight_records": 1000, "mark_query_records": 100}
_GOHARVEST = "at_least_once, goharvest's limits: 1,000 in flight, 100 a mark"


def main() -> None:
    """Measure all."""
    given = _arguments()
    settle_heap()  # as `harvest reap` does; the plain loops have it as well
    if given.child:
        with place() as here:
            here.fill(given.records, given.keys, given.size)
            print(drain(here, given.child, given.records))
            print(peak_memory())
        return
    results = _backlog(given.rounds, given.records)
    results += _hot(given.rounds, given.records // 2)
    report("harvest", results + _memory(given.records), as_json=given.json)


def _arguments() -> argparse.Namespace:
    parser = arguments(__doc__, rounds=3, records=1_000_000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--keys", type=int, default=1000, help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=100, help=argparse.SUPPRESS)
    return parser.parse_args()


def _backlog(rounds: int, records: int) -> list[Result]:
    contenders: dict[str, Callable[[Place], float]] = {
        "raw produce": lambda here: raw_produce(here, records),
        "raw COPY out": lambda here: raw_copy_out(here, records),
        "plain loop": lambda here: loop(here, records, marks=False, transactions=False),
        _PLAIN: lambda here: loop(here, records, marks=False, transactions=True),
        "plain loop, row marks": lambda here: loop(here, records, marks=True, transactions=False),
        "exactly_once": lambda here: drain(here, "exactly_once", records),
        "at_least_once": lambda here: drain(here, "at_least_once", records),
        _GOHARVEST: lambda here: drain(here, "at_least_once", records, **_FEWER),
    }
    found = medians(rounds, {name: placed(run, records) for name, run in contenders.items()})
    aims: dict[str, tuple[str, str, float | None]] = {
        "exactly_once": (_PLAIN, ">= 0.75", 0.9),
        "at_least_once": ("plain loop", ">= 0.4", None),
    }
    return [_result(name, found, *aims.get(name, ("plain loop", ""))) for name in contenders]


def _hot(rounds: int, records: int) -> list[Result]:
    many, few = "exactly_once, 1,000 keys", "at_least_once, one key"
    contenders: dict[str, Callable[[], float]] = {
        many: placed(lambda here: drain(here, "exactly_once", records), records),
        "exactly_once, one key": placed(
            lambda here: drain(here, "exactly_once", records), records, keys=1
        ),
        few: placed(lambda here: drain(here, "at_least_once", _HOT), _HOT, keys=1),
    }
    found = medians(rounds, contenders)
    goharvest = Result(few, found[few], "/s", "goharvest's 165/s, as measured", found[few] / 165)
    return [_result("exactly_once, one key", found, many, ">= 0.9"), goharvest]


def _memory(records: int) -> list[Result]:
    results = []
    for delivery, count, size in (
        ("exactly_once", records // 2, 1000),
        ("at_least_once", records // 2, 1000),
        ("exactly_once", 500, 900_000),
    ):
        command = [sys.executable, "-m", "benchmarks.harvest", "--child", delivery]
        command += ["--records", str(count), "--size", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        name = f"peak memory, {delivery}, {size:,} bytes a record"
        results.append(Result(name, float(done.stdout.split()[-1]), "MB", target="< 250"))
    return results


def drain(here: Place, delivery: str, records: int, **limits: int) -> float:
    """Run a tour until all is purged; tell the rate."""
    config = here.config(delivery, **limits)
    with psycopg.connect(here.url, autocommit=True) as connection:
        lease = leases.acquire(connection, config.name, 0, "benchmark", 3600)
    tour = Tour(config, lease, lambda: True)
    thread = threading.Thread(target=tour.run)
    thread.start()
    while thread.is_alive() and not tour.totals.marked:
        time.sleep(0.001)
    start = time.perf_counter()
    while thread.is_alive() and tour.totals.purged < records:
        time.sleep(0.005)
    seconds = time.perf_counter() - start
    tour.drain(10)
    thread.join()
    if tour.totals.purged != records:
        raise SystemExit(f"{tour.totals.purged:,} of {records:,} were purged")
    return records / seconds


def placed(run: Callable[[Place], float], records: int, keys: int = 1000) -> Callable[[], float]:
    """Run it at a place of its own, with a backlog."""

    def measured() -> float:
        with place() as here:
            here.fill(records, keys)
            return run(here)

    return measured


def _result(
    name: str, found: dict[str, Median], of: str, target: str, moonshot: float | None = None
) -> Result:
    ratio = None if name == of else found[name] / found[of]
    return Result(name, found[name], "/s", "" if name == of else of, ratio, target, moonshot)


if __name__ == "__main__":
    main()
