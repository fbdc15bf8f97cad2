"""Run `harvest dev dagster` in the background: start it once, find it again, stop it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harvest_dagster.clock import Deadline
from harvest_dagster.embedded import ports, process, remembered
from harvest_dagster.embedded.graphql import GraphQl, Location
from harvest_dagster.errors import EmbeddedError

Say = Callable[[str], None]

_START_SECONDS, _STOP_SECONDS = 180.0, 120.0
_POLL = 0.25
_TAIL = 2000


def start(home: Path, say: Say) -> tuple[str, GraphQl, Location]:
    """Start Dagster if it does not run, and wait for its code; return its URL, UI and location."""
    log = remembered.folder(home) / "dagster.log"
    if remembered.load(home).process() is None:
        say(f"starting Dagster; it says more in {log}")
        command = [sys.executable, "-m", "harvest_dagster", "dev", "dagster", "--home", str(home)]
        process.start(command, log)
    deadline = Deadline(_START_SECONDS)
    while not deadline.over:
        known = remembered.load(home)
        if known.process() is not None:
            ui = GraphQl(ports.HOST, known.port)
            location = _loaded(ui)
            if location is not None:
                return f"http://{ports.HOST}:{known.port}", ui, location
        time.sleep(_POLL)
    raise EmbeddedError(f"Dagster did not start; its log ends with: {_tail(log)}")


def stop(home: Path, say: Say) -> None:
    """Stop the Dagster of a home, if one runs, and the command that watches over it."""
    running = remembered.load(home).process()
    if running is None:
        return
    say("stopping Dagster")
    command = running.parent() if running.ppid() > 1 else None
    (command or running).send_signal(signal.SIGTERM)
    process.gone([running, *([command] if command else [])], _STOP_SECONDS)


def _loaded(ui: GraphQl) -> Location | None:
    try:
        locations = ui.locations()
    except EmbeddedError:
        return None  # it does not answer yet
    if not locations or not locations[0].loaded:
        return None
    if locations[0].fault is not None:
        raise EmbeddedError(f"the code location can't be loaded: {locations[0].fault}")
    return locations[0]


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-_TAIL:] if log.exists() else "nothing"
