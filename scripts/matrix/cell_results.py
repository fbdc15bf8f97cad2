"""What each cell brought when it was last run, kept beside the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from harvest_dagster.embedded.kafka_node import JARS
from harvest_dagster.embedded.postgres_programs import VERSION
from scripts.markdown import grid
from scripts.matrix import ROOT
from scripts.matrix.cells import CELLS, Cell

_FOLDER = ROOT / "docs" / "reference"
KEPT, PAGE = _FOLDER / "runs-on.json", _FOLDER / "runs-on.md"
_KAFKA = f"Apache {JARS.name.capitalize().replace('-', ' ')}"
_HEAD = f"""\
# What it runs on

Everything is tested on Linux on x86-64 with PostgreSQL {VERSION}, {_KAFKA}, Java 17 and the
packages that `requirements/dev.txt` pins, before a change lands. Before a release `make matrix`
runs a part of the tests on other versions, one at a time, all else being the same, and writes this
page.
"""
_TAIL = """\

Not tested:

- other systems and processors: macOS, Windows, Linux on ARM; other builds of Python than CPython;
- Java newer than 17, and Spark other than the one that is pinned;
- PostgreSQL 13 and older, Kafka 3.6 and older, which get no fixes any more;
- what others offer in place of PostgreSQL and Kafka, or as a service.

On Python these are the unit tests, and those of joined transactions, of the ledger and of harvests;
on PostgreSQL the latter three, and those of the outbox's table, its grants and migrations; on Kafka
those of the election and of harvests; on Dagster all that is for it but Spark and the UI."""


class CellResult(NamedTuple):
    """A cell's whole version, how many tests passed, why it failed if it did, when, how long."""

    version: str
    passed: int
    failure: str
    on: str
    seconds: int


def keep(name: str, result: CellResult) -> None:
    """Write a cell's result beside those of the others, and the page anew."""
    known = {**read(), name: result}
    told = {cell.name: known[cell.name]._asdict() for cell in CELLS if cell.name in known}
    KEPT.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text("\n".join(page(known)) + "\n", encoding="utf-8")


def read() -> dict[str, CellResult]:
    """Return the results that are kept, by the names of their cells."""
    if not KEPT.exists():
        return {}
    told = json.loads(KEPT.read_text(encoding="utf-8"))
    return {name: CellResult(**each) for name, each in told.items()}


def page(known: Mapping[str, CellResult], cells: Iterable[Cell] = CELLS) -> Iterator[str]:
    """Yield the page: each cell with its result, or that it has none."""
    yield _HEAD
    head = ("of", "version", "tested with", "result", "on")
    yield from grid(head, (_row(each, known) for each in cells))
    yield _TAIL


def _row(cell: Cell, known: Mapping[str, CellResult]) -> tuple[str, ...]:
    result = known.get(cell.name)
    if result is None:
        return cell.thing, cell.version, "", "not tested", ""
    said = f"**fails**: {result.failure}" if result.failure else f"{result.passed} tests passed"
    return cell.thing, cell.version, result.version, said, result.on
