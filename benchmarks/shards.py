"""How fast several leaders drain one outbox, each a shard of its keys in a process of its own.

    python -m benchmarks.shards [--records N] [--rounds N] [--json]

They stand ready; then a backlog is committed at once, and the time is taken until nothing is left.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import psycopg

from benchmarks.place import Place, place
from benchmarks.report import Result, arguments, medians, report
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger import lease as leases

_SHARDS = (1, 2, 4)
_MOONSHOT = {2: 1.0}
_LOOK_SECONDS = 0.01


def main() -> None:
    """Measure all."""
    parser = arguments(__doc__, rounds=3, records=500_000)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _harvest(Place(**json.loads(given.child[0])), *map(int, given.child[1:]))
        return
    names = {shards: f"{shards} shard{'s' * (shards > 1)}" for shards in _SHARDS}
    found = medians(
        given.rounds,
        {name: lambda n=shards: _drain(n, given.records) for shards, name in names.items()},  # type: ignore[misc]
    )
    one = found[names[1]]
    results = [
        Result(names[1], one, "/s"),
        *(
            Result(name, found[name], "/s", names[1], found[name] / one, moonshot=_MOONSHOT.get(n))
            for n, name in names.items()
            if n > 1
        ),
    ]
    report("harvest by shards", results, as_json=given.json)


def _drain(shards: int, records: int) -> float:
    with place(shards) as here, ExitStack() as stack:
        # It closes their input in the end, and waits.
        leaders = [stack.enter_context(process(here, n, shards)) for n in range(shards)]
        for leader in leaders:
            _wait_until_ready(leader)
        here.commit(records)
        start = time.perf_counter()
        with psycopg.connect(here.url, autocommit=True) as connection:
            while connection.execute("SELECT FROM outbox LIMIT 1").rowcount:
                time.sleep(_LOOK_SECONDS)
        return records / (time.perf_counter() - start)


def process(here: Place, shard: int, shards: int) -> subprocess.Popen[bytes]:
    """Start the leader of a shard, which ends when its input does."""
    command = [sys.executable, "-m", "benchmarks.shards", "--child"]
    return subprocess.Popen(
        [*command, here.as_json(), str(shard), str(shards)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _wait_until_ready(leader: subprocess.Popen[bytes]) -> None:
    if leader.stdout is None or not leader.stdout.readline():
        raise SystemExit("a leader ended before it could lead")


def _harvest(here: Place, shard: int, shards: int) -> None:
    config = here.config("exactly_once", shards)
    with psycopg.connect(here.url, autocommit=True) as connection:
        lease = leases.acquire(connection, config.name, shard, "benchmark", 3600)
    settle_heap()
    tour = Tour(config, lease, lambda: True)
    thread = threading.Thread(target=tour.run)
    thread.start()
    while tour.recovery is None and thread.is_alive():
        time.sleep(_LOOK_SECONDS)
    print("ready", flush=True)
    sys.stdin.read()
    tour.drain(10)
    thread.join()


if __name__ == "__main__":
    main()
