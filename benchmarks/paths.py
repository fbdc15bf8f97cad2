"""How fast each way to stash is, as a ratio to psycopg's.

    python -m benchmarks.paths [--records N] [--rounds N] [--json]

Messages go one by one, 20 a transaction, or many in one transaction. `harvest stash` is a process
of its own, whose start counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from benchmarks.report import Result, arguments, medians, report
from benchmarks.stash import TRANSACTION, VALUE, Connection, database
from benchmarks.ways import ASYNC, SYNC, AsyncWay, Way, message, messages, sql_function
from harvest_dagster import load_settings

_FIRST = "psycopg"


def main() -> None:
    """Measure all."""
    given = arguments(__doc__, rounds=3, records=100_000).parse_args()
    with database() as connection:
        server = sa.make_url(load_settings().postgres_url())
        url = server.set(database=connection.info.dbname).render_as_string(hide_password=False)
        singles = _contenders(url, given.records // 20, ones=True)
        many = _contenders(url, given.records, ones=False)
        results = [
            *_measure(connection, given.rounds, "one by one", singles),
            *_measure(connection, given.rounds, "many", many),
        ]
    report("ways to stash", results, as_json=given.json)


def _contenders(url: str, count: int, *, ones: bool) -> dict[str, Callable[[], float]]:
    found: dict[str, Callable[[], float]] = {
        name: lambda way=way: _run(way, url, count, ones=ones)  # type: ignore[misc]
        for name, way in SYNC.items()
    }
    found |= {
        name: lambda way=way: asyncio.run(_run_async(way, url, count, ones=ones))  # type: ignore[misc]
        for name, way in ASYNC.items()
    }
    if ones:
        return found | {"the function harvest.stash": lambda: _call(url, count)}
    return found | {"harvest stash, JSON lines": lambda: _pipe(url, count)}


def _measure(
    connection: Connection, rounds: int, how: str, contenders: dict[str, Callable[[], float]]
) -> list[Result]:
    def emptied(run: Callable[[], float]) -> Callable[[], float]:
        def measured() -> float:
            rate = run()
            connection.execute("TRUNCATE outbox")
            connection.commit()
            return rate

        return measured

    found = medians(rounds, {name: emptied(run) for name, run in contenders.items()})
    first, named = found[_FIRST], f"{_FIRST}, {how}"
    others = (name for name in found if name != _FIRST)
    ratios = [Result(f"{n}, {how}", found[n], "/s", named, found[n] / first) for n in others]
    return [Result(named, first, "/s"), *ratios]


def _run(way: Way, url: str, count: int, *, ones: bool) -> float:
    with way(url) as (transaction, stash):
        with transaction():  # a program connects once, and then stashes for as long as it lives
            stash(message(0))
        start = time.perf_counter()
        if not ones:
            with transaction():
                stash(messages(count))
        for _ in range(count // TRANSACTION if ones else 0):
            with transaction():
                for number in range(TRANSACTION):
                    stash(message(number))
        return count / (time.perf_counter() - start)


async def _run_async(way: AsyncWay, url: str, count: int, *, ones: bool) -> float:
    async with way(url) as (transaction, stash):
        async with transaction():
            await stash(message(0))
        start = time.perf_counter()
        if not ones:
            async with transaction():
                await stash(messages(count))
        for _ in range(count // TRANSACTION if ones else 0):
            async with transaction():
                for number in range(TRANSACTION):
                    await stash(message(number))
        return count / (time.perf_counter() - start)


def _call(url: str, count: int) -> float:
    return _run(sql_function, url, count, ones=True)


def _pipe(url: str, count: int) -> float:
    """Have the command read a file of lines."""
    value, headers = VALUE.decode(), {"trace": "ab12"}
    lines = (
        {"topic": "orders", "key": str(number % 1000), "value": value, "headers": headers}
        for number in range(count)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "messages.jsonl"
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        start = time.perf_counter()
        command = [sys.executable, "-m", "harvest_dagster", "stash", str(file)]
        environment = {**os.environ, "HARVEST_POSTGRES": url}
        subprocess.run(command, check=True, env=environment, capture_output=True)
        return count / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
