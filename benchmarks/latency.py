"""How long a message takes from its commit to a consumer, and what an idle harvest costs.

    python -m benchmarks.latency [--rate N] [--seconds N] [--json]

The harvest, the writer and the consumer are three processes. The writer commits one message a
transaction and notes when each commit has returned; the consumer, `read_committed`, notes when each
message arrives. A bare transaction (see `bare`) tells what Kafka alone takes on this machine, now;
before each, Kafka has half a minute of it to get warm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import psutil
import psycopg
from confluent_kafka import Consumer

from benchmarks.bare import publish
from benchmarks.place import Place, place
from benchmarks.report import Result, arguments, report
from harvest_dagster import stash
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger import lease as leases

_WARM_SECONDS = 30
_SETTLE_SECONDS = 3
_IDLE_SECONDS = 8
_FIRST = 20
_BARE = "a bare transaction, {}"
_AIMS = {"p50": "< 6000", "p99": "< 13000"}
_BOUNDS_MS = (1, 2, 4, 8, 16, 32, 64)


def main() -> None:
    """Measure all."""
    parser = arguments(__doc__, rate=1000, seconds=20)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(json.loads(given.child[1]), given.child[0], given.rate, given.seconds)
        return
    with place() as here:  # in its first minutes a broker gets twice as fast, and p99 three times
        _run(here, "bare", given.rate, _WARM_SECONDS)
    with place() as here:
        floor = _floor(here, given.rate, given.seconds)
    results = [Result(_BARE.format(p), lag * 1e6, "us") for p, lag in floor.items()]
    for delivery in ("exactly_once", "at_least_once"):
        with place() as here:
            results += _measure(here, delivery, given.rate, given.seconds, floor)
    report(f"latency at {given.rate:,} commits a second", results, as_json=given.json)


def _floor(here: Place, rate: int, seconds: int) -> dict[str, float]:
    """Tell what a bare transaction takes."""
    with _consumer(here) as arrived:
        time.sleep(_SETTLE_SECONDS)
        return _shares(_lags(json.loads(_run(here, "bare", rate, seconds)), arrived))


def _shares(lags: list[float]) -> dict[str, float]:
    return {"p50": _at(lags, 0.5), "p99": _at(lags, 0.99)}


def _lags(committed: dict[str, float], arrived: dict[str, float]) -> list[float]:
    """Wait until all have arrived, for a while; tell how long each took, sorted."""
    deadline = time.monotonic() + 10
    while len(arrived) < len(committed) and time.monotonic() < deadline:
        time.sleep(0.01)
    return sorted(arrived[n] - at for n, at in committed.items() if n in arrived)


def _measure(
    here: Place, delivery: str, rate: int, seconds: int, floor: dict[str, float]
) -> list[Result]:
    with _process(here, delivery, rate, seconds) as harvest, _consumer(here) as arrived:
        time.sleep(_SETTLE_SECONDS)
        idle = _idle(here, delivery, harvest.pid)
        first = _first_after_idle(here, arrived)
        _run(here, "write", rate, _WARM_SECONDS)
        arrived.clear()
        committed: dict[str, float] = json.loads(_run(here, "write", rate, seconds))
        lags = _lags(committed, arrived)
    missing = len(committed) - len(lags)
    shares = _shares(lags)
    return [
        *(Result(f"{delivery}, {p}", shares[p] * 1e6, "us", target=_AIMS[p]) for p in shares),
        *(
            Result(f"{delivery}, {p} beside it", lag * 1e6, "us", _BARE.format(p), lag / floor[p])
            for p, lag in shares.items()
        ),
        Result(f"{delivery}, messages that did not arrive", missing, "", target="0"),
        Result(f"{delivery}, first after idle, worst", max(first) * 1e6, "us", target="< 30000"),
        *_histogram(delivery, lags),
        *idle,
    ]


def _histogram(delivery: str, lags: list[float]) -> list[Result]:
    """Tell which share of the messages took how long."""
    bounds = [0, *_BOUNDS_MS]
    names = [f"{low} to {high} ms" for low, high in pairwise(bounds)] + [f"{bounds[-1]} ms or more"]
    found = Counter(bisect_right(_BOUNDS_MS, lag * 1000) for lag in lags)
    shares = [100 * found[place] / max(len(lags), 1) for place in range(len(names))]
    return [Result(f"{delivery}, {n}", s, "%") for n, s in zip(names, shares, strict=True)]


def _idle(here: Place, delivery: str, pid: int) -> list[Result]:
    process, before = psutil.Process(pid), _statements(here)
    start = process.cpu_times()
    time.sleep(_IDLE_SECONDS)
    end, after = process.cpu_times(), _statements(here)
    rate = (after - before) / _IDLE_SECONDS
    used = (end.user + end.system - start.user - start.system) / _IDLE_SECONDS
    return [
        Result(f"{delivery}, idle, share of a core", used * 100, "%", target="< 2 %"),
        Result(f"{delivery}, idle, statements", rate, "/s", target="< 60"),
    ]


def _statements(here: Place) -> int:
    """Each statement is a transaction of its own, so transactions tell their number."""
    with psycopg.connect(here.url) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        row = connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


def _first_after_idle(here: Place, arrived: dict[str, float]) -> list[float]:
    lags = []
    with psycopg.connect(here.url) as connection:
        for number in range(-_FIRST, 0):
            stash(connection, here.message(number, 1000, 100))
            connection.commit()
            committed, deadline = time.time(), time.monotonic() + 5
            while str(number) not in arrived and time.monotonic() < deadline:
                time.sleep(0.001)
            lags.append(arrived.get(str(number), committed + 5) - committed)
            time.sleep(0.2)
    return lags


@contextmanager
def _consumer(here: Place) -> Iterator[dict[str, float]]:
    """Note when each message arrives, by its number, on a thread of its own."""
    consumer = Consumer(
        {
            **here.kafka,
            "group.id": here.topic,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 1,
        }
    )
    consumer.subscribe([here.topic])
    arrived: dict[str, float] = {}
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                arrived[(message.value() or b"").split()[0].decode()] = time.time()

    thread = threading.Thread(target=read)
    thread.start()
    yield arrived
    ended.set()
    thread.join()
    consumer.close()


@contextmanager
def _process(
    here: Place, delivery: str, rate: int, seconds: int
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(_command(here, delivery, rate, seconds), stdin=subprocess.PIPE)
    yield process
    process.communicate(timeout=30)


def _run(here: Place, role: str, rate: int, seconds: int) -> str:
    command = _command(here, role, rate, seconds)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _command(here: Place, role: str, rate: int, seconds: int) -> list[str]:
    script = [sys.executable, "-m", "benchmarks.latency", "--rate", str(rate)]
    return [*script, "--seconds", str(seconds), "--child", role, here.as_json()]


def _child(fields: dict[str, Any], role: str, rate: int, seconds: int) -> None:
    here = Place(**fields)
    if role in _WRITERS:
        print(json.dumps(_WRITERS[role](here, rate, seconds)))
        return
    config = here.config(role)
    with psycopg.connect(here.url, autocommit=True) as connection:
        lease = leases.acquire(connection, config.name, 0, "benchmark", 3600)
    settle_heap()
    tour = Tour(config, lease, lambda: True)
    thread = threading.Thread(target=tour.run)
    thread.start()
    sys.stdin.read()
    tour.drain(10)
    thread.join()


def _write(here: Place, rate: int, seconds: int) -> dict[str, float]:
    committed = {}
    start = time.time()
    with psycopg.connect(here.url) as connection:
        for number in range(rate * seconds):
            time.sleep(max(0.0, start + number / rate - time.time()))
            stash(connection, here.message(number, 1000, 100))
            connection.commit()
            committed[str(number)] = time.time()
    return committed


_WRITERS = {"write": _write, "bare": publish}


def _at(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


if __name__ == "__main__":
    main()
