"""Measure all, and write `docs/benchmarks.md` with its plots from it: `make bench`.

    python -m benchmarks [--only NAME ...]

It starts a PostgreSQL and a Kafka of its own, unless the settings name others, and ends them. What
was measured stays beside the page as `docs/benchmarks.json`; `--only` measures a part again, or
`memory` and `dagster_idle`, which take long and are measured by hand.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import page
from benchmarks.machine import describe
from harvest_dagster import embedded
from harvest_dagster.config import names_own_servers

_HOME = Path(".harvest") / "bench"
_RAW = page.DOCS / "benchmarks.json"


class Part(NamedTuple):
    """How a part is run, and how long it may take, so that all take less than 15 minutes."""

    options: str
    seconds: int


_PARTS = {
    "stash": Part("--rounds 2 --records 100000", 40),
    "paths": Part("--rounds 2 --records 30000", 40),
    "harvest": Part("--rounds 4 --records 400000", 240),
    "growth": Part("--rounds 1", 150),
    "sizes": Part("--rounds 1", 60),
    "latency": Part("--seconds 20", 200),
    "shards": Part("--rounds 2 --records 150000", 50),
    "tour": Part("--rounds 4 --records 150000", 60),
    "spark": Part("--rounds 4 --large 10000000", 150),
}
_BY_HAND = {
    "memory": Part("--minutes 10", 640),
    "dagster_idle": Part("--seconds 120", 420),
}
_ALL = _PARTS | _BY_HAND


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=_ALL, metavar="NAME", default=[*_PARTS])
    given = parser.parse_args()
    with _servers():
        machine = describe()
        for name in given.only:
            _keep(name, _measure(name) | {"machine": machine})
    _tell_times(given.only)
    page.write(_RAW)


@contextmanager
def _servers() -> Iterator[None]:
    if names_own_servers():
        yield
        return
    environ.setdefault("KAFKA_HEAP_OPTS", "-Xms1g -Xmx1g")  # what Kafka's own script gives it
    embedded.up(_HOME, say=_say)
    environ["HARVEST_HOME"] = str(_HOME.resolve())
    try:
        yield
    finally:
        embedded.down(_HOME, say=_say)


def _measure(name: str) -> dict[str, Any]:
    began, options = time.monotonic(), _ALL[name].options
    _say(f"{name} {options}")
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options.split()]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {
        **json.loads(done.stdout),
        "settings": options,
        "on": datetime.now(UTC).date().isoformat(),
        "took seconds": round(time.monotonic() - began),
    }


def _keep(name: str, measured: dict[str, Any]) -> None:
    """Write down a part at once, so that a later one that fails does not take it along."""
    text = json.dumps(_known() | {name: measured}, indent=1)
    _RAW.write_text(text + "\n", encoding="utf-8")


def _known() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_RAW.read_text(encoding="utf-8")) if _RAW.exists() else {}
    return found


def _tell_times(names: list[str]) -> None:
    """Tell how long each part took, and how long it may."""
    took = {name: _known()[name]["took seconds"] for name in names}
    for name, seconds in took.items():
        _say(f"{name:8} {seconds:4} s of {_ALL[name].seconds} s")
    _say(f"{'all':8} {sum(took.values()):4} s of {sum(_ALL[name].seconds for name in took)} s")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
