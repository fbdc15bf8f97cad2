"""How benchmarks measure and report: the median of interleaved rounds, ratios first."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_EXACT_BELOW = 100


def arguments(doc: str | None, **numbers: int) -> argparse.ArgumentParser:
    """Make what reads a benchmark's options: its numbers with their defaults, and `--json`."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--json", action="store_true")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser


class Median(float):
    """The median of some rounds, which remembers them."""

    samples: Sequence[float] = ()

    @classmethod
    def of(cls, samples: Sequence[float]) -> Median:
        """Take the median."""
        found = cls(statistics.median(samples))
        found.samples = tuple(samples)
        return found


@dataclass(frozen=True, slots=True)
class Result:
    """A figure, what it is a ratio of, and what the ratio must be; a moonshot only should be."""

    name: str
    value: float
    unit: str
    ratio_to: str = ""
    ratio: float | None = None
    target: str = ""
    moonshot: float | None = None


def medians(rounds: int, contenders: dict[str, Callable[[], float]]) -> dict[str, Median]:
    """Let all contenders take turns, so that noise meets each of them alike; tell the medians.

    Every other round goes backwards: one of them leaves the servers more to write than another.
    """
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name in [*contenders][:: -1 if turn % 2 else 1]:
            found[name].append(contenders[name]())
            print(f"  round {turn + 1}/{rounds} {name}: {found[name][-1]:,.0f}", file=sys.stderr)
    return {name: Median.of(samples) for name, samples in found.items()}


def report(title: str, results: list[Result], *, as_json: bool) -> None:
    """Print the results."""
    if as_json:
        rows = [as_row(result) for result in results]
        print(json.dumps({"benchmark": title, "results": rows}, indent=2, allow_nan=False))
        return
    print(f"\n{title}\n")
    print(f"{'':44} {'ratio':>6}  {'target':<10} {'of':<30} {'figure':>14}")
    for r in results:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f}"
        left = f"{r.name:44} {ratio:>6}  {r.target:<10} {r.ratio_to:<30}"
        print(f"{left} {figure(r.value):>10} {r.unit}")


def as_row(result: Result) -> dict[str, Any]:
    """Write a result down with the rounds behind it; what could not be measured is null."""
    samples = getattr(result.value, "samples", ()) or (result.value,)
    told = {**asdict(result), "samples": list(samples)}
    return {name: _known(value) for name, value in told.items()}


def _known(value: Any) -> Any:  # noqa: ANN401 - what a result has
    if isinstance(value, list):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def figure(value: float) -> str:
    """Write a figure as exactly as it is worth."""
    return f"{value:,.0f}" if value >= _EXACT_BELOW else f"{value:.3g}"


def peak_memory() -> float:
    """Tell the most memory that this process ever held, in MB.

    Not `ru_maxrss`: that survives an exec, so a child would tell what its parent held.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
