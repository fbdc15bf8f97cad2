"""The servers of the bench, each of which can be killed, paused and started by itself."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers, home_state, postgres_server, process
from harvest_dagster.embedded.home_parts import parts_of
from harvest_dagster.embedded.launch import Launched
from harvest_dagster.embedded.part import Part, Site
from harvest_dagster.embedded.server_setup import set_up
from tests.torture.plan import BROKERS

POSTGRES = postgres_server.NAME
_POLL_SECONDS = 0.1
_START_SECONDS = 120.0
_STOP_SECONDS = 30.0
_CLEANLY = {POSTGRES: signal.SIGINT}


class Ground:
    """PostgreSQL and three brokers in a home of their own."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._home, self._say = home.resolve(), say
        embedded.reset(self._home, say=say)
        self.servers: Servers = embedded.up(self._home, brokers=BROKERS, say=say)
        state = home_state.load(self._home)
        assert state
        self._site = Site(self._home, state)

    def find(self, name: str) -> list[psutil.Process]:
        """Tell a server's process and its children; none if it does not run."""
        server = process.find([self._part(name).daemon(self._home)]).get(name)
        return [server, *server.children(recursive=True)] if server else []

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a server and its children."""
        for each in self.find(name):
            with suppress(psutil.NoSuchProcess):  # a connection of PostgreSQL's that ends just now
                each.send_signal(number)

    def kill(self, name: str) -> bool:
        """Kill a server, and not its children, which have to see to it; tell whether it ran."""
        found = self.find(name)
        if found:
            found[0].kill()
            process.gone(found[:1], _STOP_SECONDS)
        return bool(found)

    def stop(self, name: str) -> bool:
        """Stop a server as its operator would; tell whether it ended in time."""
        found = self.find(name)
        for each in found[:1]:
            each.send_signal(_CLEANLY.get(name, signal.SIGTERM))
        ended = process.gone(found[:1], _STOP_SECONDS)
        if not ended:
            self.kill(name)
        return ended

    def start(self, name: str) -> None:
        """Start a server that does not run, and wait until it answers."""
        if self.find(name):
            return
        part = self._part(name)
        set_up(self._site, [part], self._say)
        launched = Launched(part.daemon(self._home), part.command(self._site))
        deadline = time.monotonic() + _START_SECONDS
        while name == POSTGRES and not part.answers(self._site):
            launched.check()
            assert time.monotonic() < deadline, f"{name} does not answer"
            time.sleep(_POLL_SECONDS)

    def await_all(self) -> None:
        """Start what does not run, and wait until all answer."""
        embedded.up(self._home, say=self._say)

    def close(self) -> None:
        """Stop all; their data stays, to be looked at or thrown away."""
        for name in (POSTGRES, *(f"kafka-{number}" for number in range(1, BROKERS + 1))):
            self.signal(name, signal.SIGCONT)
        embedded.down(self._home, say=self._say)

    def throw_away(self) -> None:
        """Delete the data of servers that were stopped."""
        embedded.reset(self._home, say=self._say)

    def _part(self, name: str) -> Part:
        (found,) = (part for part in parts_of(self._site.state) if part.name == name)
        return found
