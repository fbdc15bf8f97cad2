"""`harvest reap` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from harvest_dagster.embedded import Servers
from tests.support.paths import ROOT

REAP = (sys.executable, "-m", "harvest_dagster", "reap")


@dataclass
class Reaping:
    """A reap that runs."""

    process: subprocess.Popen[bytes]
    file: Path

    @property
    def log(self) -> str:
        """What it has logged."""
        return self.file.read_text()

    def term(self) -> None:
        """Ask it to stop."""
        self.process.send_signal(signal.SIGTERM)

    def stopped(self) -> int:
        """Ask it to stop, and wait for its exit code."""
        self.term()
        return self.process.wait(30)


Reap = Callable[..., Reaping]


@pytest.fixture
def reap(database: str, servers: Servers, tmp_path: Path) -> Iterator[Reap]:
    """Start reaps; whatever still runs is killed when the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, program: tuple[str, ...] = REAP, **environment: str) -> Reaping:
        file = tmp_path / f"reap-{len(started)}.log"
        known = {"HARVEST_POSTGRES": database, "HARVEST_KAFKA": servers.kafka}
        with file.open("wb") as log:
            process = subprocess.Popen(
                [*program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT), **known, **environment},
            )
        started.append(process)
        return Reaping(process, file)

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def outbox(connection: psycopg.Connection[Any]) -> str:
    """An outbox whose name, and so its harvest's in Kafka, nobody else uses."""
    name = f"outbox_{uuid.uuid4().hex[:12]}"
    connection.execute(f"ALTER TABLE outbox RENAME TO {name}")
    connection.commit()
    return name


@pytest.fixture
def data_source(database: str) -> str:
    """Write this test's database as Go's lib/pq does."""
    parts = conninfo_to_dict(database)
    return " ".join(f"{key}={value}" for key, value in parts.items()) + " sslmode=disable"


@pytest.fixture
def left(connection: psycopg.Connection[Any]) -> Callable[[str], int]:
    """Count what waits in an outbox."""

    def count(table: str) -> int:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        connection.rollback()
        return int(row[0]) if row else 0

    return count
