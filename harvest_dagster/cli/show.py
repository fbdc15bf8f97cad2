"""How commands print: tables, figures, and one line of progress."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from harvest_dagster.text import printable

_EVERY_SECONDS = 1.0
_KIB = 1024


def say(line: str) -> None:
    """Print one line, whatever has come into it."""
    click.echo(printable(line))


def this_command() -> str:
    """Return how to call `harvest` from the working directory, as it was called this time."""
    if shutil.which("harvest") is not None:
        return "harvest"
    beside = Path(sys.executable).parent / "harvest"
    return os.path.relpath(beside) if beside.exists() else f"{sys.executable} -m harvest_dagster"


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns as wide as they need."""
    cells = [[printable(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())


def print_json(value: object) -> None:
    """Print JSON for scripts."""
    click.echo(json.dumps(value, default=str, indent=2))


def size(count: float) -> str:
    """Show bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < _KIB or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= _KIB
    raise AssertionError


class CountLine:
    """A line on stderr, once a second: how many so far, and how fast."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._what, self._total = what, total
        self._start = self._shown = time.monotonic()
        self.count = 0

    def add(self, count: int) -> None:
        """Count, and show it when a second has passed."""
        self.count += count
        if time.monotonic() - self._shown >= _EVERY_SECONDS:
            self._shown = time.monotonic()
            end = "\r" if sys.stderr.isatty() else "\n"
            sys.stderr.write(f"{self.line()}\x1b[K{end}" if end == "\r" else self.line() + end)
            sys.stderr.flush()

    def line(self) -> str:
        """The line as it stands now."""
        seconds = max(time.monotonic() - self._start, 1e-6)
        of = "" if self._total is None else f" of {self._total:,}"
        return f"{self.count:,}{of} {self._what}, {self.count / seconds:,.0f}/s"
