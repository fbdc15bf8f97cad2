"""Programs of the bench: their job is a line of JSON, and so is whatever they say or are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from tests.support.paths import ROOT

Line = dict[str, Any]


class Child:
    """A program of the bench in a process of its own, and the last line of each kind it said."""

    def __init__(self, module: str, job: Line, log: Path) -> None:
        command = [sys.executable, "-m", f"tests.torture.{module}"]
        with log.open("ab") as errors:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
        self.process = psutil.Process(self._popen.pid)
        self.said: dict[str, Line] = {}
        self.tell(**job)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._popen.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._popen.poll() is not None

    @property
    def code(self) -> int | None:
        """Its exit code, if it is gone; of one that a signal ended, the signal below 0."""
        return self._popen.poll()

    def tell(self, **line: Any) -> None:
        """Send it a line; one that is gone hears nothing."""
        assert self._popen.stdin
        with suppress(BrokenPipeError, ValueError):
            self._popen.stdin.write(json.dumps(line, default=str) + "\n")
            self._popen.stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; tell whether it came."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._let_go()
        return True

    def kill(self) -> bool:
        """End it, whatever it is doing; tell whether it had not ended by itself before."""
        self._popen.kill()
        code = self._popen.wait()
        self._let_go()
        return code == -signal.SIGKILL

    def terminate(self) -> None:
        """Ask it to end."""
        self._popen.terminate()

    def _let_go(self) -> None:
        assert self._popen.stdin
        self._reader.join()
        with suppress(BrokenPipeError):
            self._popen.stdin.close()

    def _read(self) -> None:
        assert self._popen.stdout
        with self._popen.stdout as lines:
            for line in lines:
                if line.endswith("}\n"):  # what was killed may have half a line
                    said = json.loads(line)
                    self.said[said["kind"]] = said


def job() -> Line:
    """In the program: read what to do."""
    line: Line = json.loads(next(_lines()))
    return line


def listen(hear: Callable[[Line], None], gone: Callable[[], None]) -> None:
    """In the program: hear further lines on a thread, and of the bench's end."""

    def run() -> None:
        for line in _lines():
            hear(json.loads(line))
        gone()

    threading.Thread(target=run, daemon=True).start()


@cache
def _lines() -> Iterator[str]:
    """Read lines without Python's own buffer, whose lock the listening thread would die with."""
    return _read_lines()


def _read_lines() -> Iterator[str]:
    rest = ""
    while found := os.read(0, 65_536):
        *lines, rest = (rest + found.decode()).split("\n")
        yield from lines


def say(kind: str, **more: object) -> None:
    """In the program: say a line."""
    sys.stdout.write(json.dumps({"kind": kind, **more}) + "\n")
    sys.stdout.flush()
