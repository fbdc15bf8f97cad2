"""A seeded simulation of the delivery `sequenced`: sessions, brokers and readers, step by step.

What is simulated is what surrounds the rules: a broker that takes any first sequence number of a
producer it does not know, requests that are late, leaders that die or wake up late, a database that
is restored. The rules themselves are the library's: lanes, placement, UUIDs, and the sequencer.
The claim's one statement is PostgreSQL's, and is followed here in Python (`simulated_world`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harvest_dagster.harvest.partition_lanes import Lane, PartitionLanes
from harvest_dagster.harvest.placement import Placement
from harvest_dagster.sequence.uuids import new_producer

if TYPE_CHECKING:
    from tests.support.simulated_world import World

TOPIC = "topic"
BUGS = (
    "marks_anew",
    "purges_out_of_order",
    "sends_before_the_first_is_there",
    "gives_up_and_goes_on",
    "places_anew",
    "clock_behind_the_last",
    "requeues_under_the_old_clock",
)


@dataclass
class Claim:
    """What PostgreSQL keeps of a batch."""

    producer: bytes
    first: int
    ids: list[int]
    width: int
    holes: set[int] = field(default_factory=set)


@dataclass
class Database:
    """What PostgreSQL keeps of all; a copy of it is a backup."""

    rows: set[int] = field(default_factory=set)
    parked: set[int] = field(default_factory=set)
    claims: list[Claim] = field(default_factory=list)
    producer: bytes = field(default_factory=lambda: new_producer(stable=True))
    last: int = 0


@dataclass
class Record:
    """A record on its way."""

    number: int
    clock: int
    producer: bytes
    lane: Lane


@dataclass
class Pipe:
    """The requests of a session to a partition, in order, and those that are to be sent again."""

    sequence: int = 0
    flying: list[tuple[int, Record]] = field(default_factory=list)
    again: list[tuple[int, Record]] = field(default_factory=list)


class Session:
    """A leader's session; it may be dead, and its requests under way all the same."""

    def __init__(self, world: World, epoch: int, *, careful: bool) -> None:
        self.world, self.epoch, self.careful = world, epoch, careful
        self.number = next(world.numbers)
        self.alive = True
        self.hurries = world.bug == "sends_before_the_first_is_there" and not careful
        self.lanes: PartitionLanes[Record] = PartitionLanes(lambda: world.time, one_by_one=careful)
        self.pipes: dict[Lane, Pipe] = defaultdict(Pipe)
        self.acknowledged: list[int] = []
        self.refused: list[Record] = []
        for claim in world.database.claims:
            self.enter(claim)

    def enter(self, claim: Claim) -> None:
        """Send what is left of a claim, as far as it may go out now."""
        width = self.world.width if self.world.bug == "places_anew" else claim.width
        placement = Placement("consistent", 1, {TOPIC: width})
        for at, number in enumerate(claim.ids):
            is_hole = number in claim.holes and self.world.bug != "requeues_under_the_old_clock"
            if number not in self.world.database.rows or is_hole:
                continue
            clock = claim.first + at
            lane = (TOPIC, placement.place(TOPIC, b"k%d" % (number % 5), clock))
            record = Record(number, clock, claim.producer, lane)
            if self.lanes.enter(lane, record) or (
                self.world.bug == "sends_before_the_first_is_there" and not self.careful
            ):
                self.send(record)

    def send(self, record: Record) -> None:
        """Send a request, unless its lane is closed."""
        if not self.lanes.is_closed(record.lane):
            pipe = self.pipes[record.lane]
            pipe.flying.append((pipe.sequence, record))
            pipe.sequence += 1

    def hears(self, record: Record) -> None:
        """Hear that a record is there."""
        if self.alive:
            self.acknowledged.append(record.number)
            for released in self.lanes.acknowledged(record.lane):
                if not self.hurries:
                    self.send(released)

    def is_refused(self, record: Record) -> None:
        """Hear that a record will never be taken."""
        if not self.alive:
            return
        if self.world.bug == "gives_up_and_goes_on":
            for released in self.lanes.acknowledged(record.lane):
                self.send(released)
            return
        self.lanes.close(record.lane)
        self.refused.append(record)
        if not self.careful:
            self.alive = False

    def purges(self) -> None:
        """Remove what was acknowledged, if the term holds."""
        if self.epoch != self.world.epoch:
            self.alive = False
            return
        some = self.world.random.randint(0, len(self.acknowledged))
        gone = self.acknowledged[:some]
        if self.world.bug == "purges_out_of_order":
            gone = self.acknowledged[len(self.acknowledged) - some :]
            pipes = [record.number for pipe in self.pipes.values() for _, record in pipe.flying]
            gone += pipes[-1:]
        self.acknowledged = [number for number in self.acknowledged if number not in gone]
        self.world.purge(gone)
