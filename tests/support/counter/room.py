"""A work that counts, and all that makes it a room: how it is led, seen, judged and operated."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, Field

from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.ledger.fence import Fence, fenced
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.statements import statements
from harvest_dagster.work.led import Figure, Led, Refreshed, Trusted
from harvest_dagster.work.room import AssetText, Call, CheckText, Did, Room, Verb, Verdict
from harvest_dagster.work.status import WorkStatus

_SQL = statements("tests.support.counter", "count.sql")
_STEP = fenced(_SQL["step"])


class CounterOptions(BaseModel):
    """Which count, and where."""

    name: str = Field(default="count", description="what the count is called")
    postgres: str = Field(description="postgresql://...")


class SetOptions(BaseModel):
    """Where to begin."""

    number: int = Field(default=0, description="the number to count on from")


class Counting:
    """Counts for as long as its term lasts."""

    def __init__(self, url: str, lease: Lease, trusted: Trusted) -> None:
        self.lease, self._url, self._trusted = lease, url, trusted
        self.found: Mapping[str, int] | None = None
        self.figures: dict[str, int] = {"counted": 0}
        self.held: dict[str, str] = {}
        self._told_to_end = threading.Event()

    def run(self) -> None:
        """Count one on, behind the fence, again and again."""
        fence = Fence(self.lease)
        with connect(self._url, f"{self.lease.name} count") as connection:
            self.found = {}
            while not self._told_to_end.wait(0.02):
                if not self._trusted():
                    raise fence.over()
                fence.write(connection, _STEP)
                self.figures = {"counted": self.figures["counted"] + 1}

    def drain(self, seconds: float) -> None:
        """End: nothing is ever under way for long."""
        del seconds
        self._told_to_end.set()

    def abort(self) -> None:
        """End likewise."""
        self._told_to_end.set()


@dataclass(frozen=True, slots=True)
class Counter:
    """A count that is led by who comes first."""

    name: str
    postgres_url: str
    figures: tuple[Figure, ...] = (Figure("counted", "How often it has counted", unit=""),)

    @property
    def candidate(self) -> CandidateSettings:
        """How its leader is elected: without Kafka."""
        return CandidateSettings(name=self.name, postgres_url=self.postgres_url, rest_seconds=0.5)

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Counting:
        """Make the work of a term."""
        del refreshed
        return Counting(self.postgres_url, lease, trusted)


def _judge(_led: Led, status: WorkStatus, still_seconds: float) -> Iterator[Verdict]:
    says = f"counted to {status.done:,}"
    yield Verdict("counter", "moves", still_seconds < 30.0, says)


def _set(call: Call, options: SetOptions) -> Did:
    values = {"name": call.led.name, "number": options.number}
    call.connection.execute(_SQL["set"].text, values)
    return Did([f"{call.led.name} counts on from {options.number}"], {"number": options.number})


ROOM = Room(
    word="counter",
    options=CounterOptions,
    led=lambda options: Counter(options.name, options.postgres),
    assets=(AssetText("counter", "How far it has counted."),),
    checks=(CheckText("counter", "moves", "It has counted within 30 s."),),
    judge=_judge,
    waits=lambda _status: 1,
    verbs=(Verb("set", "Has it count on from a number.", SetOptions, _set),),
)
