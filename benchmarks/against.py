"""How fast this checkout is beside another one, such as the last that landed, in one run.

    python -m benchmarks.against ../other [--pairs 7] [--only drain latency spark]

Both need their `.venv` (`make setup`). The two take turns on the same servers, those that the
settings name, each with its own code and its own copy of the benchmarks, and every other pair goes
backwards, so that neither has the better moments. What is printed is the median of each one's
figures, and of the pairs' ratios, where more than 1 is better than the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path
from statistics import median

from harvest_dagster.config import load_settings

HERE = Path.cwd()
DRAIN = """
import subprocess, sys
command = [sys.executable, "-m", "benchmarks.harvest", "--child", "exactly_once"]
print(subprocess.check_output([*command, "--records", "400000"], text=True).splitlines()[0])
"""
LATENCY = """
import json, time
from benchmarks import latency
with latency.place() as here:
    with latency._process(here, "exactly_once", 1000, 10), latency._consumer(here) as arrived:
        time.sleep(3)
        latency._run(here, "write", 1000, 5)
        arrived.clear()
        committed = json.loads(latency._run(here, "write", 1000, 10))
        lags = latency._lags(committed, arrived)
print(1 / latency._at(lags, 0.5))
"""
SPARK = """
import tempfile
from pathlib import Path
from benchmarks import spark
with tempfile.TemporaryDirectory() as folder:
    session = spark._session()
    spark._make(session, Path(folder), 1_000_000)
    run = lambda here, count: spark._ours(session, Path(folder), here, count)
    rates = [spark._placed(run, 1_000_000) for _ in range(5)]
    session.stop()
print(max(rates[3:]))
"""
PARTS = {"drain": DRAIN, "latency": LATENCY, "spark": SPARK}
"""Programs that end with a line that has one figure, of which more is better."""


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("other", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS])
    given = parser.parse_args()
    for part in given.only:
        print(_compared(part, given.other.resolve(), given.pairs), flush=True)


def _compared(part: str, other: Path, pairs: int) -> str:
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(pairs):
        sides = [(HERE, ours), (other, theirs)]
        for checkout, figures in sides if number % 2 else sides[::-1]:
            figures.append(_figure(checkout, PARTS[part]))
    ratios = sorted(mine / its for mine, its in zip(ours, theirs, strict=True))
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return (
        f"{part}: {median(ratios):.3f} of the other (pairs: {shown};"
        f" medians {median(ours):,.0f} and {median(theirs):,.0f})"
    )


def _figure(checkout: Path, program: str) -> float:
    settings = load_settings()
    known = {
        "HARVEST_POSTGRES": settings.postgres_url(),
        "HARVEST_KAFKA": json.dumps(settings.kafka_config()),
    }
    python = str(checkout / ".venv" / "bin" / "python")
    told = subprocess.run(
        [python, "-c", program],
        cwd=checkout,
        env={**os.environ, **known},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return float(told.splitlines()[-1])


if __name__ == "__main__":
    main()
