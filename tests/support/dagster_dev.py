"""`harvest dev dagster` in a process of its own, as a user starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from harvest_dagster.embedded import ports, remembered
from harvest_dagster.embedded.process import is_alive
from tests.support.project import Project
from tests.support.ui import Ui, until

START_SECONDS = 400.0
STOP_SECONDS = 150.0
BACKGROUND = ("bash", "-c", 'trap "" INT; exec "$@"', "bash")
"""As in the background of a script, where Ctrl-C's signal is ignored."""


@dataclass(frozen=True)
class DagsterDev:
    """A Dagster that runs: the command, the project it runs for, its UI, and what it said."""

    project: Project
    command: subprocess.Popen[bytes]
    ui: Ui
    log: Path

    def processes(self) -> list[psutil.Process]:
        """Find all processes of Dagster that live; they are in one session."""
        leader = remembered.load(self.project.home).pid
        kin = [each for each in psutil.process_iter() if _session(each.pid) == leader]
        return [*filter(is_alive, kin)]

    def process(self, word: str) -> psutil.Process:
        """Find one by a word of its command line, such as `dagster._daemon`."""
        found = [each for each in self.processes() if word in each.cmdline()]
        assert found, f"no process {word}"
        return found[0]

    def said(self) -> str:
        """Read what it said so far."""
        return self.log.read_text(errors="replace")

    def stop(self, number: int = signal.SIGINT) -> int:
        """End it politely; tell its exit code."""
        self.command.send_signal(number)
        return self.command.wait(STOP_SECONDS)


@contextmanager
def dagster_dev(project: Project, *options: str) -> Iterator[DagsterDev]:
    """Run Dagster for a project, from when its code location is loaded until the block ends."""
    with started(project, *options) as running:
        until(lambda: _is_up(running), START_SECONDS, "Dagster is up")
        yield running


@contextmanager
def started(project: Project, *options: str) -> Iterator[DagsterDev]:
    """Start Dagster on a free port; do not wait for it."""
    port = ports.choose(["ui"])["ui"]
    words = ["dev", "dagster", "--port", str(port), *options]
    log = project.folder / "dagster.log"
    with log.open("ab") as output:
        command = subprocess.Popen(
            [*BACKGROUND, sys.executable, "-m", "harvest_dagster", *words],
            cwd=project.folder,
            env=project.environment,
            stdout=output,
            stderr=output,
        )
    running = DagsterDev(project, command, Ui(f"http://{ports.HOST}:{port}"), log)
    try:
        yield running
    finally:
        if command.poll() is None:
            running.stop()


def _is_up(running: DagsterDev) -> bool:
    assert running.command.poll() is None, running.said()
    with suppress(OSError):
        return running.ui.loaded()
    return False


def _session(pid: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return None
