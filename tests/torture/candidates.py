"""The candidates of the bench: three processes, each with a way of its own to PostgreSQL."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from harvest_dagster.election import lease as leases
from tests.integration.harvest.place import Place
from tests.torture.child import Child

_STOP_SECONDS = 40.0


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
                self._running[name] = Child("candidate", given, self._logs / f"{name}.log")

    def start_all(self) -> None:
        """Start those that do not run."""
        for name in self._jobs:
            self.start(name)

    def kill(self, name: str) -> None:
        """Kill one."""
        child = self._take(name)
        if child is not None:
            child.kill()

    def stop(self, name: str) -> bool:
        """Stop one as its operator would; tell whether it ended in time."""
        child = self._take(name)
        if child is None:
            return True
        child.process.terminate()
        ended = child.wait(_STOP_SECONDS)
        if not ended:
            child.kill()
        return ended

    def stop_all(self) -> bool:
        """Stop all."""
        ended = [self.stop(name) for name in self._jobs]
        return all(ended)

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
                del self._running[name]
                self.gave_up.append(name)
        for name in gone:
            self.start(name)

    def _take(self, name: str) -> Child | None:
        with self._lock:
            return self._running.pop(name, None)
