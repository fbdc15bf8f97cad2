"""The candidates of the bench: three processes, each with a way of its own to PostgreSQL."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from harvest_dagster.ledger import lease as leases
from tests.support.place import Place
from tests.torture.child import Child
from tests.torture.trust import Trust, read_trust

_START_SECONDS, _STOP_SECONDS = 60.0, 40.0
_POLL_SECONDS = 0.05


class Candidates:
    """Processes by name, of which one or another may be down."""

    def __init__(
        self, place: Place, jobs: Mapping[str, dict[str, Any]], plant: str | None, logs: Path
    ) -> None:
        self._place, self._jobs, self._plant, self._logs = place, jobs, plant, logs
        self._running: dict[str, Child] = {}
        self._lock = threading.Lock()
        self.gave_up: list[str] = []

    def start(self, name: str) -> None:
        """Start one that does not run."""
        with self._lock:
            if name not in self._running:
                given = {"config": self._jobs[name], "plant": self._plant}
                given["trust"] = str(self._journal(name))
                self._running[name] = Child("candidate", given, self._logs / f"{name}.log")

    def start_all(self) -> None:
        """Start those that do not run."""
        for name in self._jobs:
            self.start(name)

    def kill(self, name: str) -> bool:
        """Kill one; tell whether it was alive."""
        child = self._take(name)
        if child is None:
            return False
        alive = child.kill()
        if not alive:
            self._crashed(name, child)
        return alive

    def ended(self, name: str) -> bool:
        """Tell whether one has ended although nobody ended it, and nobody has looked yet."""
        child = self._running.get(name)
        return child is not None and child.ended

    def stop(self, name: str) -> bool:
        """Stop one as its operator would; tell whether it ended in time, and well."""
        child = self._take(name)
        if child is None:
            return True
        _await_start(child)
        if child.ended:
            self._crashed(name, child)
            return False
        child.terminate()
        if not child.wait(_STOP_SECONDS):
            child.kill()
        return child.code == 0

    def stop_all(self) -> list[str]:
        """Stop all; tell which did not end in time, and well."""
        return [name for name in self._jobs if not self.stop(name)]

    def kill_all(self) -> None:
        """Leave none behind."""
        for name in self._jobs:
            self.kill(name)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send one a signal."""
        child = self._running.get(name)
        if child is not None:
            with suppress(psutil.NoSuchProcess):
                child.process.send_signal(number)

    def move_clock(self, name: str, seconds: float) -> None:
        """Put one's clock so far forward from the true time."""
        child = self._running.get(name)
        if child is not None:
            child.tell(offset=seconds)

    def leader(self) -> str | None:
        """Tell who has the lease, for all that can be seen just now."""
        try:
            with self._place.connect() as connection:
                rows = leases.read(connection, self._place.name)
        except psycopg.Error:
            return None
        holders = {row.holder.split(":")[1] for row in rows if not row.expired}
        running = dict(self._running)
        return next((name for name, child in running.items() if str(child.pid) in holders), None)

    def look(self) -> None:
        """Replace those that ended although nobody ended them, and remember it."""
        with self._lock:
            gone = [name for name, child in self._running.items() if child.ended]
            for name in gone:
                self._crashed(name, self._running.pop(name))
        for name in gone:
            self.start(name)

    def trust(self) -> list[Trust]:
        """Tell the terms of all, as each trusted them."""
        journals = [journal for name in self._jobs if (journal := self._journal(name)).exists()]
        return [term for each in journals for term in read_trust(each.read_text().splitlines())]

    def _journal(self, name: str) -> Path:
        return self._logs / f"{name}.trust"

    def _crashed(self, name: str, child: Child) -> None:
        child.kill()  # which lets go of what was left open
        self.gave_up.append(f"{name}: exit code {child.code}")

    def _take(self, name: str) -> Child | None:
        with self._lock:
            return self._running.pop(name, None)


def _await_start(child: Child) -> None:
    """Let it come so far that it knows what to do when it is asked to end."""
    deadline = time.monotonic() + _START_SECONDS
    while "started" not in child.said and not child.ended and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
