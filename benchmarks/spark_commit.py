"""What a write of Spark's does in PostgreSQL, without Spark: raw COPY, and the commit alone."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from benchmarks.place import Place, place
from benchmarks.report import Result
from harvest_dagster.spark import staging
from harvest_dagster.spark.binary import HEAD, TAIL, copy_rows
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import Staged
from harvest_dagster.spark.task import copy
from harvest_dagster.spark.write_plan import WritePlan, make_plan

CONNECTIONS = 2
BATCH = 10_000
_ENCODED = 20
"""So many batches are encoded, and sent over and over: ten million messages take no memory."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What something has cost PostgreSQL."""

    seconds: float
    wal: int


def raw(here: Place, count: int) -> float:
    """Copy what was encoded before, over as many connections as there are tasks."""
    planned = _plan(here, creates=False)
    topic = pa.repeat(pa.scalar(here.topic.encode()), BATCH)
    batches = [memoryview(copy_rows([topic, *planned.encoder(b)])) for b in _batches(_ENCODED)]
    names = ", ".join(["kafka_topic", *(column.name for column in planned.staging.columns)])
    statement = f"COPY outbox ({names}) FROM STDIN (FORMAT binary)"
    start = time.perf_counter()
    _in_parallel(here.url, statement, batches, count // CONNECTIONS)
    return time.perf_counter() - start


def commits(count: int, *, moves: bool) -> list[Result]:
    """Measure the commit of what is staged: tables attached, and what it would be to move them."""
    staged, attached = _staged_and_committed(count, attach_from=1)
    what = f"of {count:,}: attach"
    results = [
        Result(f"commit() {what}", attached.seconds, "s"),
        Result(f"WAL of staging {count:,}, logged", staged / count, "bytes a message"),
        Result(f"WAL of commit() {what}", attached.wal / count, "bytes a message"),
    ]
    if moves:
        _, moved = _staged_and_committed(count, attach_from=count + 1)
        move = f"INSERT ... SELECT of {count:,}"
        results += [
            Result(move, moved.seconds, "s", "attach", moved.seconds / attached.seconds),
            Result(f"WAL of {move}", moved.wal / count, "bytes a message"),
        ]
    return results


def _staged_and_committed(count: int, attach_from: int) -> tuple[int, Cost]:
    """Tell how much WAL it took to stage so many messages, and what their commit has cost."""
    with place() as here, psycopg.connect(here.url, autocommit=True) as watching:
        planned = _plan(here)
        began = _position(watching)
        done = _stage(planned, count, attach_from)
        return _position(watching) - began, _commit(watching, planned, done, attach_from)


def _plan(here: Place, *, creates: bool = True) -> WritePlan:
    schema = StructType().add("key", StringType()).add("value", StringType())
    options = SourceOptions.read({"url": here.url, "topic": here.topic})
    return make_plan(options, schema, creates=creates)


def _stage(planned: WritePlan, count: int, attach_from: int) -> list[Staged]:
    """Stage all by as many tasks as there are connections."""
    batches = _batches(_ENCODED)

    def task(_: int) -> Staged:
        mine = (batches[number % _ENCODED] for number in range(count // CONNECTIONS // BATCH))
        return copy(planned.url, planned.staging, mine, planned.encoder, attach_from)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(task, range(CONNECTIONS)))


def _batches(number: int) -> list[pa.RecordBatch]:
    starts = range(0, number * BATCH, BATCH)
    return [_batch(range(start, start + BATCH)) for start in starts]


def _batch(numbers: range) -> pa.RecordBatch:
    keys = pa.array([str(n % 1000) for n in numbers])
    return pa.record_batch({"key": keys, "value": pa.array([str(n).ljust(100) for n in numbers])})


def _in_parallel(url: str, statement: str, batches: list[memoryview], each: int) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        halves = [pool.submit(_copy, url, statement, batches, each) for _ in range(CONNECTIONS)]
        for half in halves:
            half.result()


def _copy(url: str, statement: str, batches: list[memoryview], count: int) -> None:
    with (
        psycopg.connect(url) as connection,
        connection.cursor().copy(statement) as into,
    ):
        into.write(HEAD)
        for number in range(count // BATCH):
            into.write(batches[number % len(batches)])
        into.write(TAIL)


def _commit(
    watching: psycopg.Connection[Any], planned: WritePlan, done: list[Staged], attach_from: int
) -> Cost:
    planned = replace(planned, attach_from=attach_from)
    began, start = _position(watching), time.perf_counter()
    with staging.connect(planned.url) as connection:
        written = planned.commit(connection, done)
    cost = Cost(time.perf_counter() - start, _position(watching) - began)
    if written.messages != sum(each.rows for each in done):
        raise RuntimeError(f"{written.messages:,} messages were committed")
    return cost


def _position(connection: psycopg.Connection[Any]) -> int:
    wal = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
    row = connection.execute(wal).fetchone()
    return int(row[0]) if row else 0
