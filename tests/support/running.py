"""Harvests at work: a tour or a harvest in this process, or in one that can be killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest

from harvest_dagster.election.candidate import State
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.leader_events import Event, MeterRead
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger.lease import Lease
from tests.support.paths import PROGRAMS

PROGRAM = PROGRAMS / "harvest.py"
STOP_SECONDS = 20.0


class RunningTour:
    """A tour on a thread of its own, whose lease is trusted until the test says otherwise."""

    def __init__(self, config: HarvestConfig, lease: Lease, **how: float) -> None:
        self.trusted = True
        self.refreshed: list[Lease] = []
        self.failure: BaseException | None = None
        self.tour = Tour(config, lease, lambda: self.trusted, self.refreshed.append, **how)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> BaseException | None:
        """Drain, and tell what the tour raised."""
        self.tour.drain(STOP_SECONDS)
        self.join()
        return self.failure

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(2 * STOP_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.tour.run()
        except BaseException as failure:  # noqa: BLE001 - the test asks for it
            self.failure = failure


StartTour = Callable[..., RunningTour]


@pytest.fixture
def start_tour() -> Iterator[StartTour]:
    """Start tours; they are ended when the test ends."""
    running: list[RunningTour] = []

    def begin(config: HarvestConfig, lease: Lease, **how: float) -> RunningTour:
        running.append(RunningTour(config, lease, **how))
        return running[-1]

    yield begin
    for one in running:
        one.tour.abort()
        one.join()


class RunningHarvest:
    """A harvest of this process, and the events that it told; figures are left out."""

    def __init__(self, config: HarvestConfig, handler: Callable[[Event], None]) -> None:
        self.told: list[Event] = []
        self.figures: list[MeterRead] = []
        self._handler = handler
        self.harvest = Harvest(config)
        self.harvest.set_event_handler(self._handle)
        self.harvest.start()

    def kinds(self) -> list[str]:
        """The types of the events."""
        return [type(event).__name__ for event in self.told]

    def _handle(self, event: Event) -> None:
        if isinstance(event, MeterRead):
            self.figures.append(event)
        else:
            self.told.append(event)
        self._handler(event)


StartHarvest = Callable[..., RunningHarvest]


@pytest.fixture
def start_harvest() -> Iterator[StartHarvest]:
    """Start harvests; they are stopped when the test ends."""
    running: list[RunningHarvest] = []

    def begin(
        config: HarvestConfig, handler: Callable[[Event], None] = lambda _event: None
    ) -> RunningHarvest:
        running.append(RunningHarvest(config, handler))
        return running[-1]

    yield begin
    for one in running:
        if one.harvest.state is not State.STOPPED:
            one.harvest.stop(STOP_SECONDS)


class Process:
    """A harvest, or a tour under a lease that it trusts blindly, in a process of its own."""

    def __init__(self, settings: dict[str, Any], lease: Lease | None) -> None:
        self.told: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        job = {"config": settings, "lease": asdict(lease) if lease else None}
        assert self._process.stdin
        json.dump(job, self._process.stdin, default=str)
        self._process.stdin.close()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def find(self, kind: str) -> list[dict[str, Any]]:
        """What it told of a kind."""
        return [line for line in list(self.told) if line["kind"] == kind]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, to this process alone."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Make sure that it is gone."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self.wait()

    def wait(self) -> int:
        """Wait for its end."""
        code = self._process.wait(2 * STOP_SECONDS)
        self._reader.join()
        return code

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("}\n"):  # what was killed may have half a line
                    self.told.append(json.loads(line))


Spawn = Callable[..., Process]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start harvests in processes of their own; they are killed when the test ends."""
    processes: list[Process] = []

    def begin(settings: dict[str, Any], lease: Lease | None = None) -> Process:
        processes.append(Process(settings, lease))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
