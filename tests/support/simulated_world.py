"""The world of the simulation: what happens to sessions, and what a reader makes of it all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from random import Random

from harvest_dagster.harvest.partition_lanes import SILENCE_SECONDS, Lane
from harvest_dagster.sequence import uuids
from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.uuids import Flags, made, new_producer
from tests.support.simulation import Claim, Database, Record, Session


class World:
    """All of it, moved on by one step at a time."""

    def __init__(self, seed: int, bug: str = "") -> None:
        self.random, self.bug = Random(seed), bug  # noqa: S311 - no secret
        self.numbers = count()
        self.time = 0.0
        self.database, self.backup = Database(), Database()
        self.width = 2
        self.epoch = 0
        self.stashed: list[int] = []
        self.lost: set[int] = set()
        self.doubtful: set[int] = set()
        self.poison: set[int] = set()
        self.parked_since: set[int] = set()
        self.sessions: list[Session] = []
        self.logs: dict[Lane, list[Record]] = defaultdict(list)
        self.known: dict[tuple[int, Lane], int] = {}

    def run(self, steps: int) -> None:
        """Let anything happen, and then have all that is there go out."""
        actions = [self.stash, self.begin, self.claim, self.request, self.purge_some]
        actions += [self.request] * 6 + [self.claim] * 2 + [self.stash, self.purge_some]
        rare = [self.kill, self.rest, self.widen, self.requeue, self.save, self.restore]
        for _ in range(steps):
            self.random.choice(rare if self.random.random() < 0.06 else actions)()
        self.settle()

    def settle(self) -> None:
        """Heal, and publish all that is left."""
        for _ in range(50):
            self.requeue()
            if not self.database.rows:
                break
            self.begin()
            self.claim()
            for _ in range(200):
                self.request(faults=False)
            self.sessions[-1].purges()
            self.sessions[-1].purges()
        assert not self.database.rows, "it was never drained"
        for _ in range(2000):
            self.request(faults=False)

    def stash(self) -> None:
        """Commit some records; now and then one that Kafka will never take."""
        for _ in range(self.random.randint(1, 4)):
            number = len(self.stashed)
            self.stashed.append(number)
            self.database.rows.add(number)
            if self.random.random() < 0.02:
                self.poison.add(number)

    def begin(self) -> None:
        """Have another leader begin, while the last one may not know of it."""
        last = self.sessions[-1] if self.sessions else None
        if last and last.alive and self.random.random() < 0.5:
            last.alive = False
        careful = bool(last and last.refused)
        if last and last.careful and last.epoch == self.epoch:
            for record in last.refused:
                self.park(record.number)
        self.epoch += 1
        if self.bug == "marks_anew":
            self.database.claims.clear()
        self.sessions = [*self.sessions[-3:], Session(self, self.epoch, careful=careful)]

    def claim(self) -> None:
        """Mark what no claim has, as the claim's statement does."""
        session, database = self._leader(), self.database
        if session is None or session.careful:
            return
        taken = {n for claim in database.claims for n in claim.ids if n not in claim.holes}
        free = sorted(database.rows - taken)[: self.random.randint(1, 12)]
        if not free:
            return
        now = int(self.time)
        first = max(now, database.last + 1)
        if self.bug == "clock_behind_the_last":
            first = max(1, database.last - self.random.randint(0, 3))
        database.last = first + len(free) - 1
        database.claims.append(Claim(database.producer, first, free, self.width))
        session.enter(database.claims[-1])

    def request(self, *, faults: bool = True) -> None:
        """Have a broker take, or refuse, the next request of some session."""
        pipes = [
            (session, lane, pipe)
            for session in self.sessions
            for lane, pipe in session.pipes.items()
            if pipe.flying or (pipe.again and session.alive)
        ]
        if not pipes:
            return
        session, lane, pipe = self.random.choice(pipes)
        if not pipe.flying:
            pipe.flying, pipe.again = sorted(pipe.again, key=lambda sent: sent[0]), []
        sequence, record = pipe.flying.pop(0)
        place = (session.number, lane)
        expected = self.known.get(place)
        if expected is not None and sequence < expected:
            session.hears(record)  # "duplicate sequence number": the client takes it for there
        elif expected is not None and sequence > expected:
            pipe.again.append((sequence, record))
        elif record.number in self.poison:
            session.is_refused(record)
        elif faults and self.random.random() < 0.1:
            pipe.again.append((sequence, record))
        else:
            self.logs[lane].append(record)
            self.known[place] = sequence + 1
            if not faults or self.random.random() < 0.95:
                session.hears(record)
            else:
                session.alive = False

    def purge_some(self) -> None:
        """Have a leader, or one that believes it is, purge."""
        living = [session for session in self.sessions if session.alive]
        if living:
            self.random.choice(living).purges()

    def purge(self, numbers: list[int]) -> None:
        """Remove records, and the claims of which none is left."""
        database = self.database
        database.rows -= set(numbers)
        database.claims = [
            claim
            for claim in database.claims
            if any(n in database.rows and n not in claim.holes for n in claim.ids)
        ]

    def park(self, number: int) -> None:
        """Set a record aside: it is a hole of its claim."""
        if number in self.database.rows:
            self.database.rows.discard(number)
            self.database.parked.add(number)
            self.parked_since.add(number)
            for claim in self.database.claims:
                if number in claim.ids:
                    claim.holes.add(number)

    def requeue(self) -> None:
        """Put the parked records back."""
        self.poison -= self.database.parked
        self.doubtful |= self.database.parked
        self.database.rows |= self.database.parked
        self.database.parked = set()

    def kill(self) -> None:
        """Kill a leader; what it has sent is on its way."""
        if self.sessions:
            self.random.choice(self.sessions).alive = False

    def rest(self) -> None:
        """Let the brokers forget who has been silent for long; who waited for them has given up."""
        self.time += SILENCE_SECONDS
        for session in self.sessions:
            session.alive = session.alive and not session.lanes.flying
        busy = {(s.number, lane) for s in self.sessions for lane, p in s.pipes.items() if p.flying}
        self.known = {place: n for place, n in self.known.items() if place in busy}

    def widen(self) -> None:
        """Add a partition."""
        self.width = min(self.width + 1, 4)

    def save(self) -> None:
        """Take a backup."""
        self.backup, self.parked_since = deepcopy(self.database), set()

    def restore(self) -> None:
        """Go back to the backup, which is another database: its producer is another one."""
        if self.random.random() < 0.7:
            return
        kept = self.backup.rows | self.backup.parked
        self.lost |= (self.database.rows | self.database.parked) - kept
        self.lost |= self.parked_since  # docs/explanation/guarantees.md says so
        self.doubtful |= kept
        self.database = deepcopy(self.backup)
        if self.bug != "clock_behind_the_last":
            self.database.producer = new_producer(stable=True)
        for session in self.sessions:
            session.alive = False
        self.epoch += 1

    def _leader(self) -> Session | None:
        last = self.sessions[-1] if self.sessions else None
        return last if last and last.alive and last.epoch == self.epoch else None


def read(world: World) -> Iterator[int]:
    """Read all partitions as a reader does that knows identities."""
    sequencer = Sequencer(lambda *_: [])
    for lane, log in world.logs.items():
        for at, record in enumerate(log):
            identity = uuids.read(made(record.producer, record.clock, Flags.OUTSIDE))
            for seen in sequencer.see(Sighting(str(lane), *identity, at, at + 1, record.number)):
                yield seen.body


def faults(seed: int, bug: str = "", steps: int = 150) -> list[str]:
    """Run a schedule; return what a reader would have to complain of."""
    world = World(seed, bug)
    world.run(steps)
    found: dict[int, list[int]] = defaultdict(list)
    seen: dict[int, int] = defaultdict(int)
    for number in read(world):
        seen[number] += 1
        found[number % 5].append(number)
    said = [f"{n} was lost" for n in world.stashed if not seen[n] and n not in world.lost]
    certain = {n for n in world.stashed if n not in world.doubtful | world.lost}
    said += [f"{n} came {seen[n]} times" for n in certain if seen[n] > 1]
    if world.width == 2:  # a key that moves to another partition is in order in each of the two
        for key, numbers in found.items():
            sure = [n for n in numbers if n in certain]
            said += [f"k{key} is out of order: {sure}"] * (sure != sorted(sure))
    return said
