"""Run `dagster dev` as a process of ours: choose its port, start it, wait for it, end it.

It runs in a session of its own. So Ctrl-C in a terminal reaches it only through us, and only once;
and when it ends, the processes that it started are found, because they are in that session.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL
from typing import TYPE_CHECKING

import psutil
from filelock import FileLock, Timeout

from harvest_dagster.clock import Deadline
from harvest_dagster.embedded import ports, process, remembered
from harvest_dagster.embedded.code_servers import CodeServers
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Say = Callable[[str], None]

_PATIENCE = 300.0
_SETTLE = 75.0
_LAST = 30.0
_ASK = 5.0
_POLL = 0.25
_LOOK = 1.0
_NEEDED = ("dagster", "dagster_webserver", "dagster_postgres")
_WARNING = "ignore:Function `dev_command` is superseded"


@dataclass(frozen=True)
class DagsterUi:
    """A `dagster dev` that runs, and where its UI is."""

    host: str
    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        """Return the address to open in a browser."""
        return f"http://{self.host}:{self.port}"

    def await_answer(self) -> None:
        """Wait until the UI answers."""
        deadline = Deadline(_PATIENCE)
        while not _answers(self.host, self.port):
            if not process.is_alive(self.process):
                raise EmbeddedError("Dagster ended before its UI answered: what it said is above")
            if deadline.over:
                raise EmbeddedError(f"Dagster runs, but {self.url} does not answer: try again")
            time.sleep(_POLL)

    def wait(self, say: Say) -> None:
        """Watch over its code until it ends by itself, and raise an error, for it should not."""
        servers = CodeServers(self.process, self.host, self.port, say)
        while process.is_alive(self.process):
            servers.look()
            time.sleep(_LOOK)
        raise EmbeddedError(
            "Dagster ended by itself, as it does when its daemon or its webserver dies: what it"
            " said is above; run `harvest dev dagster` again, and the harvest goes on from where it"
            " was"
        )


@contextmanager
def dagster_ui(
    home: Path, say: Say, *, host: str = ports.HOST, port: int | None = None, log_level: str
) -> Iterator[DagsterUi]:
    """Run `dagster dev` for the project in this directory until the block ends."""
    _check_installed()
    known = remembered.load(home)
    with _alone(home, known):
        if left := known.process():
            say("stopping the Dagster that was left when its `harvest dev dagster` was killed")
            _stop(left)
        chosen = _port(known, port)
        ui = _start(home, host, chosen, log_level)
        try:
            yield ui
        finally:
            say("stopping Dagster")
            _stop(ui.process)


def _check_installed() -> None:
    for name in _NEEDED:
        if find_spec(name) is None:
            raise EmbeddedError(f"{name} is not installed: install harvest-dagster[dagster]")


@contextmanager
def _alone(home: Path, known: remembered.Remembered) -> Iterator[None]:
    """Refuse a second Dagster: two daemons on one storage would start every run twice."""
    try:
        with FileLock(remembered.folder(home) / "lock", timeout=0):
            yield
    except Timeout:
        raise EmbeddedError(
            f"Dagster runs here already, on port {known.port}: open it, or end it first"
        ) from None


def _port(known: remembered.Remembered, wanted: int | None) -> int:
    if wanted is None:
        return known.port if ports.becomes_free(known.port) else ports.choose(["ui"])["ui"]
    if not ports.becomes_free(wanted):
        raise EmbeddedError(
            f"port {wanted} is taken by another program: choose another with --port"
        )
    return wanted


def _start(home: Path, host: str, port: int, log_level: str) -> DagsterUi:
    words = ["-h", host, "-p", str(port), "--log-level", log_level]
    started = process.start_here(
        [sys.executable, "-W", _WARNING, "-m", "dagster", "dev", *words], _environment(home)
    )
    remembered.save(home, port, started)
    return DagsterUi(host, port, started)


def _environment(home: Path) -> dict[str, str]:
    """Return its environment; its home is the project if that has a `dagster.yaml`, else ours."""
    here = Path.cwd()
    state = here if (here / "dagster.yaml").exists() else remembered.folder(home)
    return {"DAGSTER_HOME": str(state), **os.environ, "HARVEST_HOME": str(home)}


def _answers(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=_ASK)
    try:
        connection.request("GET", "/server_info")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _stop(leader: psutil.Process) -> None:
    """Ask it to end, then whatever it left running; a second Ctrl-C kills all that is left."""
    try:
        _signal([leader], SIGINT, _SETTLE)
        _signal(_session(leader), SIGINT, _LAST)
    finally:
        _signal(_session(leader), SIGKILL, _LAST)


def _session(leader: psutil.Process) -> list[psutil.Process]:
    return [each for each in psutil.process_iter() if _session_of(each) == leader.pid]


def _session_of(each: psutil.Process) -> int | None:
    with suppress(ProcessLookupError):
        return os.getsid(each.pid)
    return None


def _signal(processes: list[psutil.Process], number: int, patience: float) -> None:
    for each in filter(process.is_alive, processes):
        with suppress(psutil.NoSuchProcess):
            each.send_signal(number)
    process.gone(processes, patience)
