"""Ports of 127.0.0.1: choose free ones, and see whether one is free."""

from __future__ import annotations

import socket
import time
from secrets import SystemRandom
from typing import TYPE_CHECKING

from harvest_dagster.clock import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST = "127.0.0.1"

# Systems give higher ports to clients. One of them could have the port of a server that is stopped,
# which would then not start again.
CHOICE = range(10_000, 32_768)

PATIENCE = 3.0
POLL = 0.05


def choose(names: Iterable[str], taken: Iterable[int] = ()) -> dict[str, int]:
    """Choose a free port for each name, at random, so that two homes rarely choose the same.

    None is of those that are `taken` by servers that may not run just now.
    """
    open_to_all = set(CHOICE) - set(taken)
    free = filter(is_free, SystemRandom().sample(sorted(open_to_all), len(open_to_all)))
    return dict(zip(names, free, strict=False))


def becomes_free(port: int) -> bool:
    """Return whether a port is free; wait a little for a server that was just killed to free it."""
    deadline = Deadline(PATIENCE)
    while not is_free(port):
        if deadline.over:
            return False
        time.sleep(POLL)
    return True


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
