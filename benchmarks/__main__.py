"""Measure all, and write `docs/benchmarks.md` with its plots from it: `make bench`.

    python -m benchmarks [--only NAME ...]

It starts a PostgreSQL and a Kafka of its own, unless the settings name others, and ends them. What
was measured stays beside the page as `docs/benchmarks.json`; `--only` measures a part again.
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
from typing import Any

from benchmarks import page
from benchmarks.machine import describe
from harvest_dagster import embedded
from harvest_dagster.config import names_own_servers

_HOME = Path(".harvest") / "bench"
_RAW = page.DOCS / "benchmarks.json"
_PARTS: dict[str, list[str]] = {
    "stash": ["--rounds", "3"],
    "harvest": ["--rounds", "2", "--records", "500000", "--large", "10000000"],
    "sizes": ["--rounds", "2"],
    "latency": ["--seconds", "15"],
    "shards": ["--rounds", "2"],
    "tour": ["--rounds", "2", "--records", "300000"],
    "spark": ["--rounds", "2"],
}


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=_PARTS, metavar="NAME", default=[*_PARTS])
    given = parser.parse_args()
    with _servers():
        found = _measure(given.only)
    known = json.loads(_RAW.read_text(encoding="utf-8")) if _RAW.exists() else {}
    _RAW.write_text(json.dumps({**known, **found}, indent=1) + "\n", encoding="utf-8")
    page.write(_RAW)


@contextmanager
def _servers() -> Iterator[None]:
    if names_own_servers():
        yield
        return
    embedded.up(_HOME, say=_say)
    environ["HARVEST_HOME"] = str(_HOME.resolve())
    try:
        yield
    finally:
        embedded.down(_HOME, say=_say)


def _measure(names: list[str]) -> dict[str, Any]:
    found = {}
    machine = describe()
    for name in names:
        began = time.monotonic()
        _say(f"{name} {' '.join(_PARTS[name])}")
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *_PARTS[name]]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        seconds = round(time.monotonic() - began)
        _say(f"{name} took {seconds} s")
        found[name] = {
            **json.loads(done.stdout),
            "settings": " ".join(_PARTS[name]),
            "on": datetime.now(UTC).date().isoformat(),
            "took seconds": seconds,
            "machine": machine,
        }
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
