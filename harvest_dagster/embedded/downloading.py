"""Run a program that downloads: say how far it is, and end it when nothing comes any more."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harvest_dagster.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Pace:
    """How often it is looked at, and for how long it may stand still, in seconds."""

    look: float = 2.0
    stall: float = 90.0


_PACE = Pace()


def run(
    command: Sequence[str],
    log: Path,
    came: Callable[[], int],
    report: Callable[[], None],
    environment: Mapping[str, str] | None = None,
    pace: Pace = _PACE,
) -> bool:
    """Return whether the program ended well; `came` returns the bytes that it has downloaded."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        ) as program,
    ):
        try:
            return _follow(program, came, report, pace)
        finally:
            program.kill()


def size(folder: Path, names: str) -> int:
    """Return how many bytes the files of such names have in a folder and those below it."""
    total = 0
    for path in folder.rglob(names):
        with suppress(FileNotFoundError):  # it got its final name just now
            total += path.stat().st_size
    return total


def _follow(
    program: subprocess.Popen[bytes],
    came: Callable[[], int],
    report: Callable[[], None],
    pace: Pace,
) -> bool:
    stalled, seen = Deadline(pace.stall), 0
    while not stalled.over:
        report()
        with suppress(subprocess.TimeoutExpired):
            return program.wait(pace.look) == 0
        if (present := came()) != seen:
            seen, stalled = present, Deadline(pace.stall)
    return False
