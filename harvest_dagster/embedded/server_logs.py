"""The logs of the servers: where they are, and their last lines."""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING

from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FOLDER = "logs"
LONGEST = 300
POLL = 0.25

_GRAVE = re.compile(r"\b(FATAL|PANIC|ERROR|[Ee]rror:|\w+Exception|\w+Error)\b")
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")


def log_of(home: Path, name: str) -> Path:
    """Return where the log of a server is."""
    return home / FOLDER / f"{name}.log"


def size(log: Path) -> int:
    """Return how many bytes a log has; 0 if it does not exist."""
    return log.stat().st_size if log.exists() else 0


def said_since(log: Path, start: int) -> str:
    """Return what was logged after the first `start` bytes."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")


def last_word(text: str) -> str:
    """Return the last line that says what went wrong; if none does, the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    grave = [line for line in lines if _GRAVE.search(line)]
    return (grave or lines or ["it logged nothing"])[-1][:LONGEST]


def tail(home: Path, name: str | None, count: int, *, follow: bool) -> Iterator[str]:
    """Yield the last lines of one log or of all; with `follow` also each line that is added."""
    logs = _logs(home, name)
    with ExitStack() as stack:
        files = {log: stack.enter_context(log.open(errors="replace")) for log in logs}
        yield from _labelled({log: deque(file, count) for log, file in files.items()})
        while follow:
            time.sleep(POLL)
            yield from _labelled({log: file.readlines() for log, file in files.items()})


def _logs(home: Path, name: str | None) -> list[Path]:
    there = sorted((home / FOLDER).glob("*.log"))
    chosen = [log for log in there if name in (None, log.stem)]
    if not chosen:
        names = ", ".join(log.stem for log in there) or "none yet: `harvest dev up` makes them"
        raise EmbeddedError(f"there is no log {name or ''} in {home}; the logs are {names}")
    return chosen


def _labelled(added: Mapping[Path, Iterable[str]]) -> Iterator[str]:
    for log, lines in added.items():
        label = f"{log.stem} | " if len(added) > 1 else ""
        yield from (f"{label}{line.rstrip()}" for line in lines)
