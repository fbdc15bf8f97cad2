"""One run of the bench: all parts up, the nemesis at work, all healed, drained, read and judged."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka.admin import AdminClient

from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from tests.support.place import Place
from tests.support.waiting import until
from tests.torture import lanes, ledger
from tests.torture.account import COMMITTED, DRAIN_SECONDS, Account, Seen, recoveries, stops_of
from tests.torture.candidates import Candidates
from tests.torture.crowd import Crowd
from tests.torture.dagster_candidate import DagsterCandidate
from tests.torture.ground import Ground
from tests.torture.links import Links
from tests.torture.nemesis import Nemesis, Parts, unclean
from tests.torture.operator import Operator
from tests.torture.plan import CANDIDATES, DAGSTER, Plan
from tests.torture.trust import overlap

Say = Callable[[str], None]
SMALL = {"mark_query_records": 200, "max_in_flight_records": 1000, "io_error_backoff": 0.05}
"""Limits under which much the same goes out in many more batches than by default."""

_NAME = "torture"
_PROGRESS_SECONDS = 5.0
_LOOK_SECONDS = 0.5
_BEGIN_SECONDS = 120.0


class Bench:
    """The parts of one run, in a home that is thrown away."""

    def __init__(self, plan: Plan, home: Path, say: Say) -> None:
        self._plan, self._home, self._say = plan, home, say
        self._logs = home / "bench"
        self._seconds = 0.0
        self.ending = threading.Event()

    def run(self) -> Account:
        """Run the plan, and judge; what was broken is kept to be looked at.

        When `ending` is set the nemesis rests, and what was done until then is judged.
        """
        account = self._run()
        if account.broken:
            self._say(f"servers' data, logs and journals are kept in {self._home}")
        else:
            self._ground.throw_away()
        return account

    def _run(self) -> Account:
        with ExitStack() as stack:
            self._set_up(stack)
            nemesis = Nemesis(self._plan, self._parts)
            stack.callback(nemesis.heal)
            nemesis.start()
            started = time.monotonic()
            self._watch(nemesis)
            self._seconds = round(time.monotonic() - started, 1)
            load_ended = time.time()
            self._say("healing all, and waiting until all has gone out")
            nemesis.heal()
            drained = self._drain()
            ended_badly = [f"{name} at the end" for name in self._candidates.stop_all()]
            return self._judge(nemesis, drained, load_ended, unclean(nemesis.struck) + ended_badly)

    def _set_up(self, stack: ExitStack) -> None:
        self._ground = ground = Ground(self._home, self._say)
        stack.callback(ground.close)
        shutil.rmtree(self._logs, ignore_errors=True)
        self._logs.mkdir()
        url = _database(ground)
        self._place = place = _place(url, ground, self._plan.writers)
        names = [f"candidate-{number}" for number in range(1, CANDIDATES + 1)]
        links = Links(url, [*names, "writers"], self._logs)
        stack.callback(links.close)
        self._candidates = self._made_candidates(names, links)
        stack.callback(self._candidates.kill_all)
        self._parts = Parts(self._candidates, ground, links, Operator(place))
        self._candidates.start_all()
        self._crowd = Crowd(self._plan, place, links.url("writers"), self._logs)
        stack.callback(self._crowd.close)
        self._crowd.start()
        until(self._crowd.delivered, _BEGIN_SECONDS, "something is delivered")

    def _made_candidates(self, names: Sequence[str], links: Links) -> Candidates | DagsterCandidate:
        if self._plan.variant == DAGSTER:
            return DagsterCandidate(self._ground.servers, self._place, self._logs)
        settings = partial(
            self._place.settings,
            delivery=self._plan.delivery,
            limits=SMALL if self._plan.small else {},
        )
        jobs = {name: settings(postgres=links.url(name)) for name in names}
        return Candidates(self._place, jobs, self._plan.plant, self._logs)

    def _watch(self, nemesis: Nemesis) -> None:
        """Tell how it goes, and look after what ended; without its load a run is over."""
        start = told = time.monotonic()
        while nemesis.running and not self.ending.wait(_LOOK_SECONDS):
            self._candidates.look()
            if died := self._crowd.died():
                self._say(f"ends early: {', '.join(died)}")
                return
            if time.monotonic() - told >= _PROGRESS_SECONDS:
                told = time.monotonic()
                self._say(
                    f"{told - start:5.0f} s  acknowledged {self._crowd.written():9,}"
                    f"  delivered {self._crowd.delivered():9,}  kills {nemesis.kills:3}"
                    f"  now: {', '.join(nemesis.under_way) or '-'}"
                )

    def _drain(self) -> float | None:
        """End the writers, and have everything go out; tell how long that took, if in time."""
        start = time.monotonic()
        self._crowd.end_writing()
        while time.monotonic() - start < DRAIN_SECONDS:
            self._candidates.look()
            if not self._parts.operator.requeue() and not any(self._left().values()):
                return round(time.monotonic() - start, 2)
            time.sleep(_LOOK_SECONDS)
        return None

    def _left(self) -> dict[str, int]:
        """What has not gone out."""
        ((records, claims, parked),) = self._place.rows(
            "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM harvest.claim),"
            " (SELECT count(*) FROM harvest.parked WHERE requeued_at IS NULL)"
        )
        return {"records": records, "claims": claims, "parked": parked}

    def _judge(
        self, nemesis: Nemesis, drained: float | None, load_ended: float, badly: list[str]
    ) -> Account:
        committed = dict(self._place.rows("SELECT tx, count FROM torture.ledger"))
        found = self._crowd.read(sum(committed.values()))
        during = found[f"{COMMITTED} during"]
        journal = self._crowd.journal()
        acknowledged = {tx for tx, outcome in journal.items() if outcome == "acknowledged"}
        undone = {tx for tx, outcome in journal.items() if outcome == "undone"}
        stops = stops_of(during, load_ended)
        struck = [each for each in nemesis.struck if not each.missed]
        trust = self._candidates.trust()
        return Account(
            seed=self._plan.seed,
            seconds=self._seconds,
            delivery=self._plan.delivery,
            plant=self._plan.plant,
            outcomes=dict(Counter(journal.values())),
            messages=sum(committed.values()),
            vanished=len(acknowledged - committed.keys()),
            risen=len(undone & committed.keys()),
            readers={name: Seen.of(told, committed) for name, told in found.items()},
            stale_writes=len(self._place.rows("SELECT FROM torture.stale")),
            overlap_written_seconds=self._overlap_written(),
            overlap_trusted_seconds=round(overlap(trust), 3),
            terms=len(trust),
            epochs=self._place.rows("SELECT max(epoch) FROM harvest.lease")[0][0],
            gave_up=self._candidates.gave_up,
            died=self._crowd.died(),
            unclean=badly,
            drained_seconds=drained,
            left=self._left(),
            parked=self._parts.operator.requeued,
            faults=recoveries(struck, during["first"]),
            struck=len(nemesis.struck),
            missed=len(nemesis.struck) - len(struck),
            passed_over=nemesis.passed_over,
            kills=dict(Counter(each.role for each in struck if each.fault.kind == "kill")),
            longest_stop_seconds=round(max(stops, default=0.0), 2),
            stops=len(stops),
        )

    def _overlap_written(self) -> float:
        with self._place.connect() as connection:
            return round(ledger.overlap(connection), 3)


def _database(ground: Ground) -> str:
    """Make a database; tell its URL."""
    postgres = ground.servers.postgres
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {_NAME}")
    return f"{postgres.rpartition('/')[0]}/{_NAME}"


def _place(url: str, ground: Ground, writers: int) -> Place:
    """Make an outbox, a ledger and topics; whoever looks there does not wait for long."""
    with psycopg.connect(url) as connection:
        create(connection, TableName("outbox"), Kind.NATIVE)
        ledger.create(connection, range(1, writers + 1))
    kafka: dict[str, Any] = dict(ground.servers.kafka_config)
    place = Place(f"{url}?connect_timeout=3", kafka)
    place.admin = AdminClient(kafka | {"log_level": 0})
    for topic, partitions in lanes.PARTITIONS.items():
        place.new_topic(topic, partitions=partitions)
    return place
