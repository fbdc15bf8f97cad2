"""Logs of a command that runs on: lines on stderr, and below them on a terminal a live one."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Literal, TextIO

from harvest_dagster.text import printable

Form = Literal["text", "json"]
_OURS = "harvest_dagster"
_CLEAR = "\r\x1b[K"


class Console(logging.StreamHandler[TextIO]):
    """Writes log lines to stderr, in one form, and shows the live line on a terminal."""

    def __init__(self, form: Form) -> None:
        super().__init__(sys.stderr)
        self.is_live = form == "text" and sys.stderr.isatty()
        self.setFormatter(_Json() if form == "json" else _Text())

    def format(self, record: logging.LogRecord) -> str:
        """Put a log line in the live one's place, which comes back below it."""
        line = super().format(record)
        return _CLEAR + line if self.is_live else line

    def show(self, line: str) -> None:
        """Rewrite the live line; of one that is too long, what fits."""
        fits = line[: shutil.get_terminal_size().columns - 1]
        self.acquire()
        with suppress(OSError):  # the terminal has gone; whoever ends us for it will say so
            self.stream.write(_CLEAR + fits)
            self.flush()
        self.release()


@contextmanager
def logged(form: Form, level: int) -> Iterator[Console]:
    """Log to stderr: ours from a level on, and warnings of everybody else."""
    console, root, ours = Console(form), logging.getLogger(), logging.getLogger(_OURS)
    root.addHandler(console)
    ours.setLevel(level)
    logging.captureWarnings(capture=True)
    try:
        yield console
    finally:
        if console.is_live:
            console.show("")
        logging.captureWarnings(capture=False)
        root.removeHandler(console)


def _at(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class _Text(logging.Formatter):
    """`time level message`, in local time; whatever is in a message, it stays one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record down; a traceback is indented, so that it can't look like other lines."""
        time = _at(record).astimezone().isoformat(" ", "milliseconds")
        lines = [f"{time} {record.levelname:7} {printable(record.getMessage())}"]
        if record.exc_info:
            traceback = self.formatException(record.exc_info).splitlines()
            lines += [f"  {printable(line)}" for line in traceback]
        return "\n".join(lines)


class _Json(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record down."""
        line = {
            "time": _at(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)
