"""Load a code location anew when the process with its code has died: `dagster dev` does not.

A code location is a process that serves it, and a child of that process, in which the code runs.
When the child is killed, or runs out of memory, ticks and runs fail until somebody presses
`Reload` in the UI. This module does what that button does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil

from harvest_dagster.embedded import process
from harvest_dagster.embedded.graphql import GraphQl
from harvest_dagster.errors import EmbeddedError

Say = Callable[[str], None]

_SERVER, _CODE = "code-server", "grpc"


class CodeServers:
    """Watches the code servers of one `dagster dev`."""

    def __init__(self, leader: psutil.Process, host: str, port: int, say: Say) -> None:
        self._leader, self._ui, self._say = leader, GraphQl(host, port), say
        self._seen: dict[int, int] = {}

    def look(self) -> None:
        """Load all code locations anew if the code of one has died since the last look."""
        alive = {server.pid: _code_of(server) for server in self._servers()}
        died = [server for server, code in alive.items() if code is None and server in self._seen]
        self._seen = {server: code for server, code in alive.items() if code is not None}
        if died:
            self._say("a code server died: loading the code location anew")
            with suppress(EmbeddedError):  # then somebody has to press `Reload`
                self._ui.reload()

    def _servers(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            found = self._leader.children(recursive=True)
            return [each for each in found if process.is_alive(each) and _has(each, _SERVER)]
        return []


def _code_of(server: psutil.Process) -> int | None:
    with suppress(psutil.NoSuchProcess):
        for each in server.children():
            if process.is_alive(each) and _has(each, _CODE):
                return each.pid
    return None


def _has(each: psutil.Process, word: str) -> bool:
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return word in each.cmdline()
    return False
