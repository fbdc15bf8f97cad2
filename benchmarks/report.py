"""How benchmarks measure and report: the median of interleaved rounds, ratios first."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

_EXACT_BELOW = 100


@dataclass(frozen=True, slots=True)
class Result:
    """A figure, what it is a ratio of, and what the ratio must be."""

    name: str
    value: float
    unit: str
    ratio_to: str = ""
    ratio: float | None = None
    target: str = ""


def medians(rounds: int, contenders: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Let all contenders take turns, so that noise meets each of them alike; tell the medians."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, run in contenders.items():
            found[name].append(run())
            print(f"  round {turn + 1}/{rounds} {name}: {found[name][-1]:,.0f}", file=sys.stderr)
    return {name: statistics.median(values) for name, values in found.items()}


def report(title: str, results: list[Result], *, as_json: bool) -> None:
    """Print the results."""
    if as_json:
        print(json.dumps({"benchmark": title, "results": [asdict(r) for r in results]}, indent=2))
        return
    print(f"\n{title}\n")
    print(f"{'':44} {'ratio':>6}  {'target':<10} {'of':<30} {'figure':>14}")
    for r in results:
        ratio = "" if r.ratio is None else f"{r.ratio:.2f}"
        left = f"{r.name:44} {ratio:>6}  {r.target:<10} {r.ratio_to:<30}"
        print(f"{left} {figure(r.value):>10} {r.unit}")


def figure(value: float) -> str:
    """Write a figure as exactly as it is worth."""
    return f"{value:,.0f}" if value >= _EXACT_BELOW else f"{value:.3g}"


def peak_memory() -> float:
    """Tell the most memory that this process ever held, in MB.

    Not `ru_maxrss`: that survives an exec, so a child would tell what its parent held.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
