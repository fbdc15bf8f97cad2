"""What `harvest dev dagster` remembers between one start and the next: `dagster/ui.json`."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import psutil

from harvest_dagster.embedded.home_folder import make_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "dagster"
_FILE = "ui.json"
_PORT = 3000


@dataclass(frozen=True)
class Remembered:
    """The port that the UI had last, and the process that was started for it."""

    port: int = _PORT
    pid: int | None = None
    born: float | None = None

    def process(self) -> psutil.Process | None:
        """Return that process if it still runs; by now another one may have its pid."""
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid) if self.pid else None
            if found and found.create_time() == self.born:
                return found
        return None


def folder(home: Path) -> Path:
    """Return the folder in a home that is for Dagster, and make it if it is missing."""
    return make_private(home / FOLDER)


def load(home: Path) -> Remembered:
    """Read what is remembered; a file that is missing or damaged counts as empty."""
    try:
        return Remembered(**json.loads((folder(home) / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Remembered()


def save(home: Path, port: int, process: psutil.Process) -> None:
    """Write what the next start is to remember."""
    known = Remembered(port, process.pid, process.create_time())
    write_private(folder(home) / _FILE, json.dumps(asdict(known)) + "\n")
