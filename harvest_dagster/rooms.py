"""The rooms whose tables, events, commands and assets there are: one line each, from the bottom up.

What a room brings stands in the room: `migrations/`, applied in this order, `grants.toml`, which
says what each role may do with its tables, and `room.py`, which describes the rest. A new room is a
line here, and nothing else elsewhere.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOMS = [
    "harvest_dagster.ledger",
    "harvest_dagster.outbox",
    "harvest_dagster.work",
    "harvest_dagster.harvest",
    "harvest_dagster.reader",
    "harvest_dagster.spark",
]
"""Their packages."""


def folder(package: str) -> Path:
    """Return where a room's files are, without importing it, for that may take an extra."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"rooms.ROOMS names {package}, and there is no such package")
    return Path(found.submodule_search_locations[0])
