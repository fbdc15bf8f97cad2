"""Real PostgreSQL and real Apache Kafka on one machine, under one home directory.

up(home)      start both, setting them up the first time; do nothing when they run
status(home)  return what runs, and where
down(home)    stop both
reset(home)   stop both and delete their data

up(home, parts=["s3"]) adds a server to them, drop(home, ["s3"]) takes it away again.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from harvest_dagster.embedded.server_info import HomeStatus, Server, Servers
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from harvest_dagster.embedded.servers import down, drop, reset, status, up

__all__ = ["HomeStatus", "Server", "Servers", "down", "drop", "reset", "status", "up"]


def __getattr__(name: str) -> object:
    """Import the verbs when they are first used, because they need the extra `embedded`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module("harvest_dagster.embedded.servers"), name)
    except ModuleNotFoundError as missing:
        raise EmbeddedError(
            f"{missing.name} is not installed: install harvest-dagster[embedded]"
        ) from None
