"""Servers that are killed the hard way."""

from __future__ import annotations

import psutil

from harvest_dagster.embedded import Servers


def kill(servers: Servers, *names: str) -> None:
    """Kill servers, and wait until they are gone."""
    pids = [server.pid for server in servers.each if server.name in names and server.pid]
    processes = [psutil.Process(pid) for pid in pids]
    for process in processes:
        process.kill()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive
