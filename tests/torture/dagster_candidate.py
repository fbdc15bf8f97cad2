"""The candidate of the Dagster variant: one Dagster, as its user starts it, with all its processes.

    code server   leads: its sensor stands for election, and launches the run of the tour
    run           harvests

Both can be killed, the code location reloaded, the run terminated in the UI.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import psycopg

from harvest_dagster.embedded import Servers
from harvest_dagster.ledger import lease as leases
from tests.support import shop
from tests.support.dagster_dev import DagsterDev, dagster_dev
from tests.support.place import Place
from tests.support.project import Project, copy_location
from tests.support.shop import TOUR, Shop
from tests.support.ui import ENDED, UiError
from tests.torture.plan import RUN
from tests.torture.trust import Trust

NAME = "dagster"
_UNSEEN = (AssertionError, IndexError, OSError, UiError, psycopg.Error, psutil.Error)
"""What comes of it where nothing is there to strike, or nobody can tell just now."""


class DagsterCandidate:
    """A Dagster that runs; what of it dies, it has to see to by itself."""

    def __init__(self, servers: Servers, place: Place, folder: Path) -> None:
        place.name = f"dagster_{place.name.removeprefix('harvest-')}"
        self._place = place
        self._project = Project(folder / "project", place.postgres.partition("?")[0], servers)
        copy_location(self._project.folder, place.name)
        self._stack = ExitStack()
        self._dagster: DagsterDev | None = None
        self.gave_up: list[str] = []

    def start_all(self) -> None:
        """Start it, and wait until its code is loaded; later, it runs or has given up."""
        if self._dagster is None:
            self._dagster = self._stack.enter_context(dagster_dev(self._project))

    def start(self, _target: str) -> None:
        """Do nothing: what was killed has to be replaced by itself."""

    def kill(self, target: str) -> bool:
        """Kill the run's process or the code server; tell whether it was there."""
        found = self._run() if target == RUN else self._code_server()
        with suppress(psutil.NoSuchProcess):
            for each in found:
                each.kill()
            return bool(found)
        return False

    def press(self, what: str) -> bool:
        """Reload the code location, or terminate the run; tell whether there was one."""
        try:
            if what == "terminate":
                return self._terminate()
            shop.reload(self._shop)
        except _UNSEEN:
            return False
        return True

    def look(self) -> None:
        """See whether all of it has ended, which nobody asked it to."""
        ended = self._dagster is not None and self._dagster.command.poll() is not None
        if ended and not self.gave_up:
            self.gave_up.append(f"{NAME}: exit code {self._running.command.poll()}")

    def stop_all(self) -> list[str]:
        """Stop it as its user would; tell whether it did not end well."""
        if self.gave_up:
            return []
        return [NAME] if self._running.stop() else []

    def kill_all(self) -> None:
        """Leave nothing behind."""
        self._stack.close()

    def leader(self) -> None:
        """Tell nobody: there is one candidate, and who of its processes leads is its own affair."""

    def trust(self) -> list[Trust]:
        """Tell nothing: what its processes trust is written down nowhere."""
        return []

    @property
    def _running(self) -> DagsterDev:
        assert self._dagster is not None
        return self._dagster

    @property
    def _shop(self) -> Shop:
        return Shop(self._running, self._place)

    def _run(self) -> list[psutil.Process]:
        with suppress(*_UNSEEN):
            found = shop.worker(self._shop)
            return [found] if found else []
        return []

    def _code_server(self) -> list[psutil.Process]:
        with suppress(*_UNSEEN), self._place.connect() as connection:
            (row,) = leases.read(connection, self._place.name)
            leader = psutil.Process(int(row.holder.split(":")[1]))
            ours = {process.pid for process in self._running.processes()}
            return [leader, *leader.children(recursive=True)] if leader.pid in ours else []
        return []

    def _terminate(self) -> bool:
        ui = self._running.ui
        under_way = [run.id for run in ui.runs(TOUR, 1) if ui.run_status(run.id) not in ENDED]
        for run in under_way:
            ui.terminate(run)
        return bool(under_way)
