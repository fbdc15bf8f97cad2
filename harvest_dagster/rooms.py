"""The rooms whose tables, events, commands and assets there are: one line each, from the bottom up.

What a room brings stands in the room: `migrations/`, applied in this order, and `room.py`, which
describes the rest. A new room is a line here, and nothing else elsewhere.
"""

from __future__ import annotations

ROOMS = [
    "harvest_dagster.ledger",
    "harvest_dagster.outbox",
    "harvest_dagster.work",
    "harvest_dagster.harvest",
    "harvest_dagster.spark",
]
"""Their packages."""
