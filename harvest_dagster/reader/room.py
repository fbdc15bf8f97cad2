"""What the reader brings to those above it."""

from __future__ import annotations

from collections.abc import Iterator

from harvest_dagster.reader.reader_yaml import ReaderOptions, reader_of
from harvest_dagster.reader.reset import RESET
from harvest_dagster.text import counted
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import AssetText, CheckText, Room, Verdict
from harvest_dagster.work.status import WorkStatus

_STUCK_SECONDS = 60.0
KINDS = {
    "stopped": "a reader can't go on without an operator; why",
    "reset": "an operator had a reader go on elsewhere; where, and who it was",
}
_ASSETS = (
    AssetText(
        "reader",
        "What was applied of the topics, how much waits there, and doubles that were dropped.",
        kinds=frozenset({"postgres", "kafka"}),
        events=("stopped", "reset"),
    ),
)
_CHECKS = (CheckText("reader", "no_lag_stuck", "Where records wait to be read, some are applied."),)


def waits(status: WorkStatus) -> int:
    """Return how many records wait to be read."""
    return sum(tour.figure("lag") for tour in status.tours if tour.alive)


def judge(_led: Led, status: WorkStatus, still_seconds: float) -> Iterator[Verdict]:
    """Judge whether it gets on."""
    waiting = waits(status)
    stuck = waiting > 0 and still_seconds >= _STUCK_SECONDS
    says = f"{counted(waiting, 'record')} waiting, nothing applied for {still_seconds:.0f} s"
    yield Verdict("reader", "no_lag_stuck", not stuck, says if stuck else "it gets on")


def about(status: WorkStatus) -> str:
    """Write how much waits."""
    return f", lag {waits(status):,}"


ROOM = Room(
    word="reader",
    events=KINDS,
    commands="harvest_dagster.cli.reader:reader",
    options=ReaderOptions,
    led=reader_of,
    assets=_ASSETS,
    checks=_CHECKS,
    judge=judge,
    waits=waits,
    about=about,
    place=lambda led: ("reader", led.name),
    twice="each would fence the other",
    warnings=frozenset({"stopped"}),
    verbs=(RESET,),
)
