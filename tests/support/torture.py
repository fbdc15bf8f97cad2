"""The account of a run of the torture that broke nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.torture.account import Account, Seen

SEEN = Seen(1000, 0, 0, 0, 0, 0, 0, 0, 0, 5)
KEPT = Account(
    seed=1,
    seconds=60.0,
    delivery="exactly_once",
    plant=None,
    outcomes={"acknowledged": 100, "undone": 10, "unknown": 1},
    messages=1000,
    vanished=0,
    risen=0,
    readers={f"read_committed {when}": SEEN for when in ("during", "after")},
    stale_writes=0,
    overlap_written_seconds=0.0,
    overlap_trusted_seconds=0.0,
    epochs=5,
    terms=3,
    gave_up=[],
    died=[],
    unclean=[],
    drained_seconds=1.5,
    left={"records": 0, "claims": 0, "parked": 0},
    parked=0,
    faults={},
    struck=0,
    missed=0,
    passed_over=0,
    kills={},
    longest_stop_seconds=2.0,
    stops=1,
)


def readers(**changes: Any) -> dict[str, Seen]:
    """Have one of two readers see something else."""
    return KEPT.readers | {"read_committed after": replace(SEEN, **changes)}
