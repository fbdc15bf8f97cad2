"""What Dagster costs: how long the sensor's tick takes, and what is written and burnt at rest.

    python -m benchmarks.dagster_idle [--ticks N] [--records N] [--seconds N] [--json]

`--seconds 0` leaves the real Dagster out.

The ticks are the sensor's own function, with a Dagster whose storage is in PostgreSQL: first beside
an empty outbox, then right after a backlog was drained, whose dead rows nobody has vacuumed. The
rest is a real `harvest dev dagster` of a copy of this project, idle and then with orders coming in.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import psycopg
import yaml

from benchmarks.place import VALUE, Place, place
from benchmarks.report import Result, arguments, report
from harvest_dagster import stash
from harvest_dagster.embedded import ports
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.ledger import lease as leases
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    Names,
    NeliResource,
    OutboxResource,
    leader_sensor,
)
from harvest_dagster.orchestration.candidacy import candidacy_of

_FOLDERS = ("assets", "resources", "sensors")
_FILES = ("definitions.py", "workspace.yaml", "dagster.yaml")
_NAMES = Names("harvest")
_START_SECONDS, _POLL, _HOUR = 300.0, 0.2, 3600.0
_BATCH, _PAUSE_SECONDS = 10, 0.1


def main() -> None:
    """Measure all of it."""
    given = arguments(__doc__, ticks=200, records=1_000_000, seconds=180).parse_args()
    with place() as here:
        results = _ticks(here, given.ticks, given.records)
    if given.seconds:
        with place() as here, _dagster(here) as database:
            results += _at_rest(here, database, given.seconds)
    report("Dagster at rest", results, as_json=given.json)


def _ticks(here: Place, ticks: int, records: int) -> list[Result]:
    harvest = HarvestResource(
        outbox=OutboxResource(postgres=here.url, table="outbox"),
        kafka=KafkaResource(settings={key: str(value) for key, value in here.kafka.items()}),
        neli=NeliResource(name=here.leader_topic, leader_topic=here.leader_topic),
    )
    with _instance(here) as instance:
        tick = _ticker(harvest, instance)
        _await(lambda: _leads(harvest, tick), "the sensor leads")
        idle = _timed(tick, ticks)
        here.fill(records)
        _drain(here)
        drained = _timed(tick, ticks)
    candidacy_of(ROOM, harvest.led(), _NAMES.sensor).stop()
    return [*_percentiles("tick, idle", idle), *_percentiles("tick, after a drain", drained)]


@contextmanager
def _instance(here: Place) -> Iterator[dg.DagsterInstance]:
    """Have a Dagster that keeps its runs and events in PostgreSQL, as ours does."""
    with tempfile.TemporaryDirectory() as home:
        url = here.url.replace("postgresql://", "postgresql+psycopg2://")
        storage = {"storage": {"postgres": {"postgres_url": url}}}
        (Path(home) / "dagster.yaml").write_text(yaml.safe_dump(storage))
        with dg.DagsterInstance.from_config(home) as instance:
            yield instance


def _ticker(harvest: HarvestResource, instance: dg.DagsterInstance) -> Callable[[], None]:
    sensor, cursor = leader_sensor(_NAMES, [], running=False), None

    def tick() -> None:
        nonlocal cursor
        with dg.build_sensor_context(
            instance=instance,
            resources={_NAMES.key: harvest},
            sensor_name=sensor.name,
            cursor=cursor,
        ) as context:
            cursor = sensor.evaluate_tick(context).cursor

    return tick


def _leads(harvest: HarvestResource, tick: Callable[[], None]) -> bool:
    tick()
    return candidacy_of(ROOM, harvest.led(), _NAMES.sensor).leads(0)


def _timed(tick: Callable[[], None], ticks: int) -> list[float]:
    found = []
    for _ in range(ticks):
        start = time.perf_counter()
        tick()
        found.append(time.perf_counter() - start)
    return sorted(found)


def _drain(here: Place) -> None:
    """Leave the dead rows that a harvest leaves, with no vacuum to clear them away."""
    with psycopg.connect(here.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE outbox SET (autovacuum_enabled = false)")
        connection.execute("DELETE FROM outbox")


def _percentiles(name: str, seconds: list[float]) -> list[Result]:
    half, most = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]
    return [
        Result(f"{name}, p50", half * 1000, "ms"),
        Result(f"{name}, p99", most * 1000, "ms", target="< 200"),
        Result(f"{name}, worst", seconds[-1] * 1000, "ms"),
    ]


@contextmanager
def _dagster(here: Place) -> Iterator[str]:
    """Run a copy of this project, with a database for Dagster's own; tell that database's URL."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{here.leader_topic}-dagster"
        _copy(here, Path(folder), name)
        port = str(ports.choose(["ui"])["ui"])
        command = [sys.executable, "-m", "harvest_dagster", "dev", "dagster", "--port", port]
        running = subprocess.Popen(
            command, cwd=folder, env=_environment(here, folder), stdout=subprocess.DEVNULL
        )
        try:
            _await(lambda: _tours(here) > 0, "a tour runs")
            yield f"{here.url.rpartition('/')[0]}/{name}"
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(_START_SECONDS)
            with psycopg.connect(here.url, autocommit=True) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _copy(here: Place, folder: Path, database: str) -> None:
    for name in _FOLDERS:
        shutil.copytree(name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(name, folder)
    harvest = folder / "resources" / "harvest.py"
    named = f'NeliResource(name="{here.leader_topic}", leader_topic="{here.leader_topic}")'
    harvest.write_text(harvest.read_text().replace("NeliResource()", named))
    settings = yaml.safe_load((folder / "dagster.yaml").read_text())
    settings["storage"]["custom"]["config"]["database"] = database
    (folder / "dagster.yaml").write_text(yaml.safe_dump(settings))


def _environment(here: Place, folder: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARVEST_", "DAGSTER_"))}
    return {
        **kept,
        "HARVEST_POSTGRES": here.url,
        "HARVEST_KAFKA": str(here.kafka["bootstrap.servers"]),
        "HARVEST_HOME": f"{folder}/.harvest",
    }


def _at_rest(here: Place, database: str, seconds: int) -> list[Result]:
    """Let it be for so long, then let orders come in for so long."""
    with psycopg.connect(here.url, autocommit=True) as connection:
        holder = leases.read(connection, here.leader_topic)[0].holder
    server = psutil.Process(int(holder.split(":")[1]))
    idle, used = _written(database, seconds, server)
    stopped = threading.Event()
    writer = threading.Thread(target=_orders, args=(here, stopped))
    writer.start()
    busy, used_busy = _written(database, seconds, server)
    stopped.set()
    writer.join()
    return [
        Result("code server, idle, share of a core", used * 100, "%", target="< 5 %"),
        Result("code server, busy, share of a core", used_busy * 100, "%"),
        *(Result(f"{table}, idle, rows an hour", rows, "/h") for table, rows in idle.items()),
        *(Result(f"{table}, busy, rows an hour", rows, "/h") for table, rows in busy.items()),
    ]


def _written(database: str, seconds: int, server: psutil.Process) -> tuple[dict[str, float], float]:
    """Tell how many rows an hour Dagster writes, and what share of a core the code server takes."""
    before, burnt = _rows(database), _cpu(server)
    time.sleep(seconds)
    after, share = _rows(database), (_cpu(server) - burnt) / seconds
    return {name: (after[name] - before[name]) * _HOUR / seconds for name in before}, share


def _rows(database: str) -> dict[str, int]:
    tables = {"events": "event_logs", "ticks": "job_ticks"}
    with psycopg.connect(database) as connection:
        return {
            name: int((connection.execute(f"SELECT count(*) FROM {table}").fetchone() or [0])[0])
            for name, table in tables.items()
        }


def _cpu(server: psutil.Process) -> float:
    spent = server.cpu_times()
    return float(spent.user + spent.system)


def _orders(here: Place, stopped: threading.Event) -> None:
    """Stash a hundred messages a second."""
    number = 0
    while not stopped.wait(_PAUSE_SECONDS):
        messages = [here.message(number + n, 100, VALUE) for n in range(_BATCH)]
        with psycopg.connect(here.url) as connection:
            stash(connection, messages)
        number += _BATCH


def _tours(here: Place) -> int:
    with psycopg.connect(here.url) as connection:
        found = connection.execute("SELECT count(*) FROM harvest.tour").fetchone()
        return int(found[0]) if found else 0


def _await(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_START_SECONDS:.0f} s: {what}")
        time.sleep(_POLL)


if __name__ == "__main__":
    main()
