"""How fast messages of different sizes are drained, as ratios to loops without guarantees.

python -m benchmarks.sizes [--rounds N] [--json]
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.ceilings import loop
from benchmarks.harvest import drain
from benchmarks.place import Place, place
from benchmarks.report import Result, arguments, medians, report
from harvest_dagster.harvest.heap import settle_heap

_SIZES = {100: 150_000, 1_000: 75_000, 100_000: 1_500}
"""How large, and how many."""
_BATCH_BYTES, _MOST = 10_000_000, 5_000
_DELIVERIES = {"exactly_once": True, "at_least_once": False}


def main() -> None:
    """Measure all."""
    given = arguments(__doc__, rounds=3).parse_args()
    settle_heap()
    results = [each for size in _SIZES for each in _measure(given.rounds, size)]
    report("harvest by size", results, as_json=given.json)


def _measure(rounds: int, size: int) -> list[Result]:
    count, batch = _SIZES[size], min(_MOST, _BATCH_BYTES // size)
    contenders: dict[str, Callable[[Place], float]] = {}
    for delivery, in_transactions in _DELIVERIES.items():
        contenders[delivery] = lambda here, d=delivery: drain(here, d, count)  # type: ignore[misc]
        contenders[_plain(delivery)] = lambda here, t=in_transactions: loop(  # type: ignore[misc]
            here, count, marks=False, transactions=t, batch=batch
        )
    found = medians(rounds, {name: _placed(run, size) for name, run in contenders.items()})
    results = []
    for delivery in _DELIVERIES:
        rate, plain = found[delivery], found[_plain(delivery)]
        name = f"{delivery}, {size:,} bytes"
        results.append(Result(name, rate, "/s", _plain(delivery), rate / plain))
        results.append(Result(f"{name}, in MB", rate * size / 1e6, "MB/s"))
    return results


def _plain(delivery: str) -> str:
    return "plain loop" + (", in transactions" if _DELIVERIES[delivery] else "")


def _placed(run: Callable[[Place], float], size: int) -> Callable[[], float]:
    def placed() -> float:
        with place() as here:
            here.fill(_SIZES[size], size=size)
            return run(here)

    return placed


if __name__ == "__main__":
    main()
