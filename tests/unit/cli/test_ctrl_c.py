"""Ctrl-C at any moment of a command: a line and an exit code, and never a stack."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-X", "importtime", str(Path(sys.executable).with_name("harvest")))
"""The command, which says of each module when it has been loaded."""
LOADED = "import time:"


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections, and answers nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def started(silent: socket.socket, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that has begun, and waits for that server if it comes so far."""
    port = silent.getsockname()[1]
    with subprocess.Popen(
        [*COMMAND, "status"],
        cwd=tmp_path,
        env={**os.environ, "HARVEST_POSTGRES": f"postgresql://127.0.0.1:{port}/none"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Press Ctrl-C; return the exit code, and what was said beside what was loaded."""
    process.send_signal(signal.SIGINT)
    lines = process.communicate(timeout=40)[1].splitlines()
    return process.returncode, "\n".join(line for line in lines if not line.startswith(LOADED))


def wait_for(process: subprocess.Popen[str], module: str) -> None:
    """Wait until the command has loaded a module."""
    assert process.stderr is not None
    found = (line.rpartition("|")[2].strip() == module for line in process.stderr)
    assert any(found), f"{module} is not loaded"


@pytest.mark.parametrize(
    "module",
    [
        "click.core",
        "psycopg",
        "pydantic_core",
        "harvest_dagster.config",
        "confluent_kafka",
        "harvest_dagster.harvest.config",
        "harvest_dagster.cli",
    ],
)
def test_while_it_is_loaded(started: subprocess.Popen[str], module: str) -> None:
    """It ends at once, wherever the imports are."""
    wait_for(started, module)
    assert interrupted(started) == (130, "interrupted")


def test_while_it_waits(started: subprocess.Popen[str], silent: socket.socket) -> None:
    """The command ends in good order, and the same is said."""
    wait_for(started, "harvest_dagster.cli")
    connection, _ = silent.accept()
    with connection:
        assert interrupted(started) == (130, "interrupted")


def test_where_it_is_ignored(silent: socket.socket, tmp_path: Path) -> None:
    """A background job of a script begins with Ctrl-C ignored, and goes on."""
    words = f"trap '' INT; {' '.join(COMMAND[:1] + COMMAND[3:])} --help"
    del silent
    done = subprocess.run(["sh", "-c", words], cwd=tmp_path, capture_output=True, check=True)
    assert b"Usage: harvest" in done.stdout
