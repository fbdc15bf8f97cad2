"""Daemons: start them in a session of their own, find them again, stop them.

A daemon is recognised by its command line, which names a directory of its home. A pid in a file
could be another process's after a crash or a reboot, or be lost with the file.
"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from harvest_dagster.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Ladder = Sequence[tuple[signal.Signals, float]]
    Found = dict[str, psutil.Process]

POLL = 0.05
REMIND = 5.0


@dataclass(frozen=True)
class Daemon:
    """A program that runs in the background: how it is recognised, and how it is asked to stop."""

    name: str
    program: str
    marks: frozenset[str]
    log: Path
    ladder: Ladder

    def is_this(self, argv: Sequence[str]) -> bool:
        """Return whether a process with this command line is the daemon."""
        # Look at all words: setpriv has this command line too, just before it becomes the daemon.
        named = any(Path(word).name.startswith(self.program) for word in argv)
        return named and self.marks <= set(argv)


def find(daemons: Iterable[Daemon]) -> Found:
    """Return the processes of those daemons that run, by their names."""
    wanted = list(daemons)
    found: Found = {}
    processes = psutil.process_iter(["cmdline", "create_time"])
    # A child has its parent's command line at first, so the oldest process is the daemon.
    for process in sorted(processes, key=lambda each: each.info["create_time"] or 0):
        for daemon in wanted:
            if daemon.is_this(process.info["cmdline"] or ()):
                found.setdefault(daemon.name, process)
    return found


def start(command: list[str], log: Path) -> psutil.Process:
    """Start a daemon that outlives us: it has no terminal and no input, and writes to its log."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    output = [(os.POSIX_SPAWN_OPEN, 1, log, append, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)]
    return _spawn(command, environment(), output)


def start_here(command: list[str], environment: dict[str, str]) -> psutil.Process:
    """Start a program in a session of its own; its output goes where ours goes."""
    return _spawn(command, environment, [])


def _spawn(
    command: list[str], environment: dict[str, str], output: list[tuple[Any, ...]]
) -> psutil.Process:
    pid = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *output],
        setsid=True,
        setsigmask=[],
        # A background job of a shell ignores SIGINT, and so would its children.
        setsigdef=[signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP],
    )
    return psutil.Process(pid)


def environment() -> dict[str, str]:
    """Return the environment of our programs, whose locale knows all file names, and is English."""
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(
    daemons: Iterable[Daemon], say: Callable[[str], None], started: Found | None = None
) -> None:
    """Stop those of the daemons that run, all at the same time, and wait until they are gone."""
    known = {daemon.name: daemon for daemon in daemons}
    found = find(known.values()) | {
        name: process for name, process in (started or {}).items() if is_alive(process)
    }
    if found:
        say(f"stopping {', '.join(found)}")
        with ThreadPoolExecutor(len(found)) as pool:
            list(pool.map(lambda name: _stop(known[name], found[name], say), found))


def _stop(daemon: Daemon, process: psutil.Process, say: Callable[[str], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        family = [process, *process.children(recursive=True)]
        for number, patience in daemon.ladder:
            process.send_signal(number)
            if gone([process], patience, lambda: say(f"{daemon.name} is still stopping")):
                break
        _kill(family)


def _kill(family: Sequence[psutil.Process]) -> None:
    for process in filter(is_alive, family):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    gone(family, REMIND)


def gone(
    processes: Sequence[psutil.Process],
    patience: float,
    remind: Callable[[], None] = lambda: None,
) -> bool:
    """Wait until processes have ended; return False if they run on for longer than `patience`."""
    deadline, reminder = Deadline(patience), Deadline(REMIND)
    while any(map(is_alive, processes)):
        if deadline.over:
            return False
        if reminder.over:
            remind()
            reminder = Deadline(REMIND)
        time.sleep(POLL)
    _reap(processes)
    return True


def _reap(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.TimeoutExpired):
            process.wait(0)
