"""The commands of a room that is led without Kafka, and whose work counts ticks."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.work.led import Figure, Refreshed, Trusted
from harvest_dagster.work.room import Call, Did, Room, Verb


class TickingOptions(BaseModel):
    """What is led."""

    name: str = Field(default="clock", description="What it is called.")
    shards: int = Field(default=1, description="How many shards it has.")
    postgres: str


class AskOptions(BaseModel):
    """Who is asked to resign."""

    shard: int = Field(description="Which shard.")
    often: bool = Field(default=False, description="Whether more than once.")


class Ticks:
    """Counts until its term ends."""

    found: Mapping[str, int] = {}
    held: Mapping[str, str] = {}

    def __init__(self, lease: Lease, trusted: Trusted) -> None:
        self.lease, self._trusted = lease, trusted
        self._ticks, self._end = 0, threading.Event()

    @property
    def figures(self) -> Mapping[str, int]:
        """How often it has ticked."""
        return {"ticks": self._ticks, "shards_at_work": 1}

    def run(self) -> None:
        """Tick."""
        while self._trusted() and not self._end.wait(0.01):
            self._ticks += 1

    def drain(self, seconds: float) -> None:
        """End, for which it needs no time."""
        assert seconds >= 0
        self._end.set()

    def abort(self) -> None:
        """End."""
        self._end.set()


@dataclass(frozen=True)
class Ticking:
    """What is led: ticks."""

    options: TickingOptions
    figures: Sequence[Figure] = (
        Figure("ticks", "How often it has ticked", unit=""),
        Figure("shards_at_work", "Shards that tick now", counts=False, unit=""),
    )

    @property
    def name(self) -> str:
        """What it is called."""
        return self.options.name

    @property
    def postgres_url(self) -> str:
        """Where PostgreSQL is."""
        return self.options.postgres

    @property
    def candidate(self) -> CandidateSettings:
        """Who comes first leads."""
        return CandidateSettings(
            name=self.name, postgres_url=self.postgres_url, shards=self.options.shards
        )

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Ticks:
        """Tick for a term."""
        del refreshed  # ticks begin no epoch of their own
        return Ticks(lease, trusted)


def ask(call: Call, options: AskOptions) -> Did:
    """Ask the leader to resign, and say who asks."""
    asked = leases.ask_to_resign(call.connection, call.led.name, options.shard)
    often = " often" if options.often else ""
    return Did((f"asked {call.led.name}/{options.shard}{often}: {asked}", f"by {call.by}"))


ROOM = Room(
    word="ticking",
    options=TickingOptions,
    led=Ticking,
    verbs=(Verb("ask_to_go", "Ask the leader to resign.", AskOptions, ask),),
)
ticking = group_of(ROOM)

if __name__ == "__main__":
    ticking()
