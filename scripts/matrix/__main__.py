"""Run a slice of the tests on one version after the other; called by `make matrix`.

    python -m scripts.matrix [CELL ...]

All cells, or those whose names are given, or begin so: `postgres kafka-3.7`. What each brought goes
into `docs/reference/runs-on.json`, and the page of it. The exit code is 1 if one has failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from harvest_dagster.errors import HarvestError
from scripts.matrix import FOLDER, ROOT, cell_results, cell_servers
from scripts.matrix.cell_results import CellResult
from scripts.matrix.cells import CELLS, Cell, Ready

_SECONDS = 900
_OPTIONS = ("-q", "-n", "2", "-m", "not long")


def main(names: Sequence[str]) -> int:
    """Run the cells, show a table at the end, and return the exit code."""
    known = [cell.name for cell in CELLS]
    for name in names:
        if not any(each.startswith(name) for each in known):
            print(f"matrix: there is no cell {name}: choose from {', '.join(known)}")
            return 2
    chosen = [cell for cell in CELLS if not names or cell.name.startswith(tuple(names))]
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = {}
    for cell in chosen:
        found[cell.name] = result = _try(cell)
        cell_results.keep(cell.name, result)
        print(_line(cell, result), flush=True)
    print("\n" + "\n".join(_line(cell, found[cell.name]) for cell in chosen))
    return 1 if any(result.failure for result in found.values()) else 0


def _try(cell: Cell) -> CellResult:
    """Run one cell, and leave nothing of it running."""
    began = time.monotonic()
    version, passed, failure = "", 0, ""
    cell_servers.stop()
    try:
        ready = cell.prepare()
        version = ready.version
        passed, failure = _test(cell, ready)
    except (HarvestError, LookupError, OSError, subprocess.SubprocessError) as error:
        failure = str(error)
    finally:
        cell_servers.stop()
    today = datetime.now(UTC).date().isoformat()
    return CellResult(version, passed, failure, today, round(time.monotonic() - began))


def _test(cell: Cell, ready: Ready) -> tuple[int, str]:
    """Run a cell's tests; return how many passed, and what is wrong if something is."""
    log, told = FOLDER / f"{cell.name}.log", FOLDER / f"{cell.name}.xml"
    told.unlink(missing_ok=True)
    command = [ready.python, "-m", "pytest", *_OPTIONS, f"--junitxml={told}", *cell.options]
    with log.open("w") as output, TemporaryDirectory() as temporary:
        done = subprocess.run(
            [*command, *cell.tests],
            # By itself pytest would clean up what another run of it still writes.
            env={
                **os.environ,
                "HARVEST_TEST_HOME": str(cell_servers.HOME),
                "PYTEST_DEBUG_TEMPROOT": temporary,
            },
            cwd=ROOT,
            stdout=output,
            stderr=output,
            check=False,
            timeout=_SECONDS,
        )
    if ready.servers:
        cell_servers.check_same(ready.servers)
    passed, failed = counts(told)
    return passed, f"{failed} tests failed, see {log.relative_to(ROOT)}" if done.returncode else ""


def counts(told: Path) -> tuple[int, int]:
    """Return how many tests passed, and how many failed, of what pytest wrote."""
    counts = ET.parse(told).getroot()[0].attrib  # noqa: S314 - pytest's own
    failed = int(counts["failures"]) + int(counts["errors"])
    return int(counts["tests"]) - failed - int(counts["skipped"]), failed


def _line(cell: Cell, result: CellResult) -> str:
    told = result.failure or f"{result.passed} tests passed"
    return f"{cell.name:16} {result.version or '-':10} {result.seconds:4} s  {told}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
