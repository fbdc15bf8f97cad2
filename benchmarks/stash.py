"""How fast stash is, against the same work written by hand with psycopg.

    python -m benchmarks.stash [--json] [--rounds N] [--records N]

It uses the PostgreSQL that harvest_dagster's settings name (`harvest dev up` starts one), in a
database of its own that is dropped at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from benchmarks.report import Result, arguments, medians, peak_memory, report
from harvest_dagster import Message, load_settings, stash
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName

TRANSACTION = 20
VALUE = b"v" * 200
FLAT = (10_000, 2_000_000)
INSERT = """
    INSERT INTO outbox (kafka_topic, kafka_key, kafka_value, kafka_header_keys,
                        kafka_header_values) VALUES (%s, %s, %s, %s, %s)
"""
COPY = """
    COPY outbox (kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values)
    FROM STDIN (FORMAT binary)
"""

Connection = psycopg.Connection[Any]


def main() -> None:
    """Measure all."""
    parser = arguments(__doc__, rounds=5, records=300_000)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_of:
        print(_memory_of(given.memory_of))
        return
    with database() as connection:
        results = [
            *_single(connection, given.rounds, given.records // 20),
            *_many(connection, given.rounds, given.records),
        ]
    report("stash", [*results, *_memory()], as_json=given.json)


def _single(connection: Connection, rounds: int, records: int) -> list[Result]:
    def by_hand(number: int) -> None:
        row = ("orders", str(number % 1000), VALUE, ["trace"], [b"ab12"])
        connection.execute(INSERT, row)

    def by_stash(number: int) -> None:
        stash(connection, Message("orders", str(number % 1000), VALUE, {"trace": b"ab12"}))

    def run(write: Callable[[int], None]) -> Callable[[], float]:
        def transactions() -> float:
            start = time.perf_counter()
            for first in range(0, records, TRANSACTION):
                for number in range(first, first + TRANSACTION):
                    write(number)
                connection.commit()
            return _rate(connection, records, start)

        return transactions

    found = medians(rounds, {"by hand": run(by_hand), "stash": run(by_stash)})
    return _compared("stash, one at a time, 20 a transaction", "INSERT by hand", found, ">= 0.9")


def _many(connection: Connection, rounds: int, records: int) -> list[Result]:
    def timed(write: Callable[[], object]) -> Callable[[], float]:
        def run() -> float:
            start = time.perf_counter()
            write()
            connection.commit()
            return _rate(connection, records, start)

        return run

    def by_hand(keys: list[str], values: list[bytes]) -> None:
        with connection.cursor() as cursor, cursor.copy(COPY) as copy:
            copy.set_types(["text", "bytea", "bytea", "text[]", "bytea[]"])
            for number in range(records):
                copy.write_row(("orders", str(number % 1000).encode(), VALUE, keys, values))

    def by_stash(headers: dict[str, bytes]) -> None:
        numbers = range(records)
        stash(connection, (Message("orders", str(n % 1000), VALUE, headers) for n in numbers))

    contenders = {
        "by hand": timed(lambda: by_hand([], [])),
        "stash": timed(lambda: by_stash({})),
        "by hand, header": timed(lambda: by_hand(["trace"], [b"ab12"])),
        "stash, header": timed(lambda: by_stash({"trace": b"ab12"})),
        "bytes made beforehand": timed(lambda: _copy_encoded(connection, records)),
    }
    found = medians(rounds, contenders)
    headed = {name: found[f"{name}, header"] for name in ("by hand", "stash")}
    of, made = "COPY by hand, row by row", found["bytes made beforehand"]
    return [
        *_compared("stash, many", of, found, ">= 0.8"),
        *_compared("stash, many, one header", f"{of}, one header", headed, ">= 0.8"),
        Result("COPY of bytes made beforehand", made, "/s", of, made / found["by hand"]),
    ]


def _copy_encoded(connection: Connection, records: int) -> None:
    fields = (b"orders", b"7", VALUE, bytes(8) + b"\0\0\0\x19", bytes(8) + b"\0\0\0\x11")
    row = b"\0\x05" + b"".join(len(field).to_bytes(4) + field for field in fields)
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for first in range(0, records, 1000):
            copy.write(row * min(1000, records - first))
        copy.write(b"\xff\xff")


def _memory() -> list[Result]:
    few, many = (_peak(records) for records in FLAT)
    name = f"peak memory, {FLAT[1]:,} messages"
    return [Result(name, many, "MB", f"with {FLAT[0]:,}", many / few, "< 1.1")]


def _peak(records: int) -> float:
    command = [sys.executable, "-m", "benchmarks.stash", "--memory-of", str(records)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _memory_of(records: int) -> float:
    with database() as connection:
        stash(connection, (Message("orders", str(n % 1000), VALUE) for n in range(records)))
        connection.rollback()
    return peak_memory()


def _compared(name: str, of: str, found: Mapping[str, float], target: str) -> list[Result]:
    ratio = found["stash"] / found["by hand"]
    return [
        Result(of, found["by hand"], "/s"),
        Result(name, found["stash"], "/s", of, ratio, target),
    ]


def _rate(connection: Connection, records: int, start: float) -> float:
    rate = records / (time.perf_counter() - start)
    connection.execute("TRUNCATE outbox")
    connection.commit()
    return rate


@contextmanager
def database() -> Iterator[Connection]:
    """Give a database of its own, with an outbox, which goes in the end."""
    url = load_settings().postgres_url()
    name = f"bench_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            with psycopg.connect(url, dbname=name) as connection:
                create(connection, TableName("outbox"), Kind.NATIVE)
                connection.commit()
                yield connection
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    main()
