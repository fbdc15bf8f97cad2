"""How fast a harvest drains inside a run of Dagster, as a ratio to the same without Dagster.

    python -m benchmarks.tour [--records N] [--rounds N] [--json]

Both are processes of their own; the rate is taken from outside, from the first record that is gone
from the outbox to the last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from typing import Any

import dagster as dg
import psycopg

from benchmarks.place import Place, place
from benchmarks.report import Result, arguments, medians, report
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger import lease as leases
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
    harvest_definitions,
)

_PLAIN, _IN_DAGSTER = "without Dagster", "in a run of Dagster"
_LOOK_SECONDS = 0.01


def main() -> None:
    """Measure both."""
    parser = arguments(__doc__, rounds=3, records=500_000)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.child[0], Place(**json.loads(given.child[1])))
        return
    found = medians(
        given.rounds,
        {how: lambda how=how: _drain(how, given.records) for how in (_PLAIN, _IN_DAGSTER)},  # type: ignore[misc]
    )
    ratio = found[_IN_DAGSTER] / found[_PLAIN]
    results = [
        Result(_PLAIN, found[_PLAIN], "/s"),
        Result(_IN_DAGSTER, found[_IN_DAGSTER], "/s", _PLAIN, ratio, ">= 0.95"),
    ]
    report("harvest in Dagster", results, as_json=given.json)


def _drain(how: str, records: int) -> float:
    with place() as here:
        here.fill(records)
        with psycopg.connect(here.url, autocommit=True) as connection:
            leases.acquire(connection, here.leader_topic, 0, "benchmark", 3600)
        command = [sys.executable, "-m", "benchmarks.tour", "--child", how, here.as_json()]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            return _rate(here, records)
        finally:
            process.kill()
            process.wait()


def _rate(here: Place, records: int) -> float:
    """Watch the first id that is there: the ids are drained in their order, without gaps."""
    start, gone_at_start = 0.0, 0
    with psycopg.connect(here.url, autocommit=True) as connection:
        while True:
            row = connection.execute("SELECT min(id) FROM outbox").fetchone()
            first = row[0] if row else None
            if first is None:
                return (records - gone_at_start) / (time.perf_counter() - start)
            if first > 1 and not start:
                start, gone_at_start = time.perf_counter(), first - 1
            time.sleep(_LOOK_SECONDS)


def _child(how: str, here: Place) -> None:
    if how == _PLAIN:
        settle_heap()
        with psycopg.connect(here.url, autocommit=True) as connection:
            lease = leases.acquire(connection, here.leader_topic, 0, "benchmark", 3600)
        threading.Thread(target=Tour(here.config("exactly_once"), lease, lambda: True).run).start()
        sys.stdin.read()
        return
    kafka: dict[str, Any] = {key: str(value) for key, value in here.kafka.items()}
    harvest = HarvestResource(
        outbox=OutboxResource(postgres=here.url, table="outbox"),
        kafka=KafkaResource(settings=kafka),
        neli=NeliResource(name=here.leader_topic, leader_topic=here.leader_topic),
    )
    job = harvest_definitions(harvest).resolve_job_def("harvest_tour")
    job.execute_in_process(instance=dg.DagsterInstance.ephemeral())


if __name__ == "__main__":
    main()
