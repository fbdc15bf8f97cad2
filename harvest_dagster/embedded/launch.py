"""Start those servers of a home that do not run, all at the same time, and wait for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from harvest_dagster.clock import Deadline
from harvest_dagster.embedded import postgres_server, process
from harvest_dagster.embedded.home_parts import parts_of
from harvest_dagster.embedded.interrupt import uninterrupted
from harvest_dagster.embedded.server_logs import last_word, said_since, size
from harvest_dagster.embedded.server_setup import set_up
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from psutil import Process

    from harvest_dagster.embedded.part import Part, Say, Site
    from harvest_dagster.embedded.process import Daemon

PATIENCE = 120.0
POLL = 0.1


class Launched:
    """A daemon that was just started, and where in its log that was."""

    def __init__(self, daemon: Daemon, command: list[str]) -> None:
        self._daemon = daemon
        self._command = command
        self._start()

    def check(self) -> None:
        """Raise an error if the daemon has died, with the reason; start it again if that helps."""
        if process.is_alive(self.process):
            return
        said = said_since(self._daemon.log, self._since)
        if postgres_server.LINGERING not in said:
            raise EmbeddedError(
                f"{self._daemon.name} did not start: {last_word(said)} (see {self._daemon.log})"
            )
        self._start()

    def _start(self) -> None:
        self._since = size(self._daemon.log)
        self.process = process.start(self._command, self._daemon.log)


class Launch:
    """The start of one home's parts: those that its state has, or these."""

    def __init__(self, site: Site, say: Say, parts: Sequence[Part] | None = None) -> None:
        self._site = site
        self._say = say
        self._wanted = parts or parts_of(site.state)
        self._missing: dict[str, Daemon] = {}
        self._launched: dict[str, Launched] = {}

    def run(self) -> None:
        """Start what is missing, and wait until all answer; on failure stop what was started."""
        try:
            while not self._bring_up():
                pass
        except BaseException:
            # A process that was started just now may not have its own command line yet, by which
            # `stop` would find it.
            known = {name: each.process for name, each in self._launched.items()}
            process.stop(self._missing.values(), self._say, known)
            raise

    def _bring_up(self) -> bool:
        """Return whether all answer; False if one has died since that ran when we looked."""
        running = process.find(part.daemon(self._site.home) for part in self._wanted)
        missing = [part for part in self._wanted if part.name not in running]
        self._missing |= {part.name: part.daemon(self._site.home) for part in missing}
        if missing:
            self._start(missing)
        return self._await(running.values())

    def _start(self, missing: Sequence[Part]) -> None:
        set_up(self._site, missing, self._say)
        self._say(f"starting {', '.join(part.name for part in missing)}")
        for part in missing:
            command = part.command(self._site)
            # Ctrl-C in between would leave a process that `run` does not know of, and so not stop.
            with uninterrupted():
                self._launched[part.name] = Launched(self._missing[part.name], command)

    def _await(self, running: Collection[Process]) -> bool:
        deadline = Deadline(PATIENCE)
        for part in self._wanted:
            while not part.answers(self._site):
                for each in self._launched.values():
                    each.check()
                if not all(map(process.is_alive, running)):
                    return False
                if deadline.over:
                    raise EmbeddedError(
                        f"{part.name} runs but does not answer: see `harvest dev logs`,"
                        " then try `harvest dev down` and `harvest dev up`"
                    )
                time.sleep(POLL)
        return True
