"""Tasks that fail, are run twice, are killed; writers at once: all messages once, or none."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.once import Request
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import register, staging, task
from harvest_dagster.spark.binary import encoded
from harvest_dagster.spark.clean import DEAD_AFTER, clean
from harvest_dagster.spark.commit import commit
from harvest_dagster.spark.moves import TableMoves
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import StagedColumn, Staging
from harvest_dagster.spark.write_plan import make_plan
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.spark import Copies, Left, Rows, Write

ONCE = "SELECT count(*), count(DISTINCT kafka_value) FROM outbox"


def disturbed(spark: SparkSession, how: str) -> DataFrame:
    """Ten thousand messages in four tasks, each of which fails at first, half-way."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for place, batch in enumerate(batches):
            if place == 1 and context is not None and context.attemptNumber() == 0:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError(how)
            yield batch

    frame = spark.range(10_000, numPartitions=4).selectExpr("string(id) AS value")
    return frame.mapInArrow(pass_on, "value string")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("how", [pytest.param("raise", marks=pytest.mark.long), "kill"])
def test_tasks_fail_and_are_tried_again(
    spark: SparkSession, write: Write, rows: Rows, left: Left, how: str
) -> None:
    """A task that fails after half of its rows adds them once."""
    write(disturbed(spark, how), topic="t")
    assert rows(ONCE) == [(10_000, 10_000)]
    assert left() == (0, 0)


@pytest.fixture
def staged(database: str) -> Staging:
    """Stage an Arrow batch as two attempts of one task do."""
    uuid, table = uuid4(), TableName("outbox")
    place = Staging(
        staging.new_name(uuid), (StagedColumn("kafka_topic"), StagedColumn("kafka_value"))
    )
    batch = pa.record_batch({"t": pa.array(["t"] * 3), "v": pa.array(["a", "b", "c"])})
    with staging.connect(database) as connection:
        staging.create(connection, uuid, place, table)
        done = [
            task.copy(database, place, [batch], lambda b: [*map(encoded, b.columns)])
            for _ in range(2)
        ]
        staging.settle(connection, place, done[1:])
    return place


def test_the_attempt_that_lost(database: str, staged: Staging, rows: Rows) -> None:
    """Of two attempts that staged the same rows, the one that Spark took counts."""
    assert rows(f'SELECT count(*) FROM harvest_staging."{staged.name}"') == [(6,)]
    with staging.connect(database) as connection:
        attempts, count = staging.settled(connection, staged)
    assert (len(attempts), count) == (1, 3)


def plan_of(spark: SparkSession, database: str) -> Any:
    """Plan a write, and stage three messages for it."""
    frame = spark.range(3).selectExpr("string(id) AS value")
    planned = make_plan(
        SourceOptions.read({"url": database, "topic": "t", "key": "k"}), frame.schema
    )
    batch = pa.record_batch({"value": pa.array(["0", "1", "2"])})
    done = task.copy(database, planned.staging, [batch], planned.encoder)
    return planned, done


def test_two_at_once(spark: SparkSession, database: str, rows: Rows) -> None:
    """Of several writers that commit under one key at once, one writes."""
    written: list[bool] = []

    def run() -> None:
        planned, done = plan_of(spark, database)
        with staging.connect(database) as connection:
            start.wait()
            written.append(planned.commit(connection, [done]).repeated)

    start = threading.Barrier(4)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == [False, True, True, True]
    assert rows(ONCE) == [(3, 3)]


def test_commit_is_run_twice(spark: SparkSession, database: str, stashed: Stashed) -> None:
    """A commit that Spark repeats, not knowing that it was done, writes nothing more."""
    planned, done = plan_of(spark, database)
    planned = replace(planned, request=replace(planned.request, on_repeat="error"))
    with staging.connect(database) as connection:
        for _ in range(2):
            planned.commit(connection, [done])
    assert len(stashed()) == 3


def test_staged_rows_are_lost(
    spark: SparkSession, database: str, rows: Rows, stashed: Stashed
) -> None:
    """Where PostgreSQL has lost what was staged, as its crash empties it, nothing is written."""
    planned, done = plan_of(spark, database)
    rows(f'TRUNCATE harvest_staging."{planned.staging.name}"')
    with staging.connect(database) as connection:  # noqa: SIM117
        with pytest.raises(Exception, match="of 3 rows staged for outbox there are 0"):
            planned.commit(connection, [done])
    assert stashed() == []
    assert rows("SELECT count(*) FROM harvest.written") == [(0,)]


def test_what_the_dead_have_left(
    spark: SparkSession, write: Write, database: str, left: Left
) -> None:
    """What a writer staged that is silent for days goes with the next write; what is new stays."""
    old, _ = plan_of(spark, database)
    plan_of(spark, database)
    since = DEAD_AFTER + timedelta(minutes=1)
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE harvest.staged SET touched_at = now() - %s WHERE name = %s",
            (since, old.staging.name),
        )
    write(spark.range(1).selectExpr("'v' AS value"), topic="t")
    assert left() == (1, 1)


def test_what_waits_for_the_rest(spark: SparkSession, database: str, left: Left) -> None:
    """What a transaction has staged first stays for as long as it is at work on the rest."""
    first, _ = plan_of(spark, database)
    with staging.connect(database) as connection:
        connection.execute("UPDATE harvest.staged SET touched_at = now() - %s", (2 * DEAD_AFTER,))
        write = first.request.write
        rest = Staging(staging.new_name(write), first.staging.columns)
        staging.create(connection, write, rest, first.outbox)
        clean(connection)
    assert left() == (2, 2)


def test_what_was_cleaned_up(spark: SparkSession, database: str) -> None:
    """A task that comes back to a staging table that is gone says so, and what to do."""
    planned, _ = plan_of(spark, database)
    with staging.connect(database) as connection:
        staging.drop(connection, planned.staging.name)
    with pytest.raises(OutboxError, match=r"what was staged is gone \(.*; write again"):
        task.copy(database, planned.staging, [], planned.encoder)


def test_a_task_that_does_not_know(spark: SparkSession, database: str, left: Left) -> None:
    """A task that writes keeps its table from a stranger, but not from its own write's end."""
    planned, _ = plan_of(spark, database)
    name = planned.staging.name
    with (  # noqa: PT012 - it is the task's next statement that raises
        pytest.raises(psycopg.OperationalError),
        staging.connect(database) as task,
        task.transaction(),
        staging.connect(database) as other,
    ):
        task.execute(f'LOCK TABLE harvest_staging."{name}" IN ROW EXCLUSIVE MODE')
        staging.drop(other, name)
        assert left() == (1, 1)
        staging.discard(other, name)
        assert left() == (0, 0)
        task.execute("SELECT 1")


BLOCKED = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
              WHERE NOT granted AND datname = current_database()"""


def test_two_clean_at_once(database: str, rows: Rows) -> None:
    """A part that another writer is just dropping is no trouble for the one that comes second."""
    rows("CREATE TABLE harvest_staging.part_x () INHERITS (outbox)")
    with psycopg.connect(database) as first, ThreadPoolExecutor(1) as pool:
        first.execute("DROP TABLE harvest_staging.part_x")
        second = pool.submit(_clean, database)
        until(lambda: rows(BLOCKED) == [(1,)] or second.done(), what="the second waits")
        first.commit()
        second.result()


def _clean(database: str) -> None:
    with staging.connect(database) as connection:
        clean(connection)


NO_DROPS = """
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not now'; END $$;
CREATE EVENT TRIGGER refuse ON sql_drop WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION refuse()"""


def test_cleaning_fails(spark: SparkSession, write: Write, rows: Rows) -> None:
    """A write whose commit is done has succeeded, whatever comes of its staging table."""
    rows(NO_DROPS)
    write(spark.range(3).selectExpr("string(id) AS value"), topic="t")
    assert rows(ONCE) == [(3, 3)]


def test_two_writes_at_once(spark: SparkSession, write: Write, rows: Rows, left: Left) -> None:
    """Of two jobs under one key one writes; two without a key both do, in one outbox."""

    def run(key: dict[str, str]) -> None:
        register(spark)
        frame = spark.range(5000, numPartitions=4).selectExpr("string(id) AS value")
        start.wait()
        write(frame, topic="t", **key)

    for key, times in (({"key": "k"}, 1), ({}, 2)):
        start = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(run, key) for _ in range(2)]:
                done.result()
        assert rows(ONCE) == [(5000 * times, 5000)]
        rows("DELETE FROM outbox")
    assert left() == (0, 0)


def upsert(url: str, start: threading.Barrier, *each: tuple[str, list[int]]) -> None:
    """Upsert ids into one table after the other, in one transaction."""
    request, moves = Request(uuid4(), None, TableName("outbox")), []
    with staging.connect(url) as connection:
        for table, ids in each:
            place = Staging(staging.new_name(request.write), (StagedColumn("id", "integer"),))
            staging.create(connection, request.write, place, None)
            batch = pa.record_batch({"id": pa.array(ids, pa.int32())})
            done = task.copy(url, place, [batch], lambda b: [*map(encoded, b.columns)])
            staging.settle(connection, place, [done])
            moves.append(TableMoves(connection, TableName(table)).upsert(place, ["id"]))
        start.wait()
        commit(connection, request, moves)


SLOW = """
CREATE TABLE one (id int PRIMARY KEY);
CREATE TABLE two (id int PRIMARY KEY);
INSERT INTO one VALUES (1), (2);
INSERT INTO two VALUES (1);
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON one FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER slow BEFORE INSERT ON two FOR EACH ROW EXECUTE FUNCTION slow()"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.mark.parametrize(
    ("deadlocks", "first", "second"),
    [
        (0, [("one", [1, 2])], [("one", [2, 1])]),
        (1, [("one", [1]), ("two", [1])], [("two", [1]), ("one", [1])]),
    ],
)
def test_two_upserts_in_opposite_order(
    database: str, rows: Rows, deadlocks: int, first: Any, second: Any
) -> None:
    """Writers of the same rows wait for each other; where that is a deadlock, one tries again."""
    rows(SLOW)
    start = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(upsert, database, start, *each) for each in (first, second)]:
            done.result()
    assert rows("SELECT count(*) FROM harvest.written") == [(2,)]
    until(lambda: rows(DEADLOCKS) == [(deadlocks,)], what="PostgreSQL tells its deadlocks")


def test_one_key_of_two_outboxes(spark: SparkSession, write: Write, rows: Rows) -> None:
    """A key that was written with another outbox is refused, and not taken for a repetition."""
    frame = spark.range(3).selectExpr("string(id) AS key", "'v' AS value")
    write(frame, topic="t", key="k")
    write(frame, topic="t", key="k", outbox="public.outbox")
    with pytest.raises(PySparkException, match="a key belongs to one outbox"):
        write(frame, topic="t", key="k", outbox="goharvest_outbox")
    assert rows("SELECT count(*) FROM outbox") == [(3,)]


def test_a_role_with_another_isolation(database: str, rows: Rows) -> None:
    """A role's own isolation level does not hide from a writer what another has committed."""
    name = database.rpartition("/")[2].partition("?")[0]
    rows(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    with staging.connect(database) as connection, connection.transaction():
        shown = connection.execute("SHOW transaction_isolation").fetchone()
    assert shown == ("read committed",)


def test_a_server_that_is_gone_without_a_word(database: str) -> None:
    """It is given up, but not one that only takes its time with what a task copies."""
    with staging.connect(database) as connection:
        found = connection.info.get_parameters()
    assert found["keepalives_idle"] == found["connect_timeout"] == "10"
    assert found["tcp_user_timeout"] == "120000"


def test_cancelled(
    spark: SparkSession, write: Write, rows: Rows, left: Left, copies: Copies
) -> None:
    """A job that is cancelled while it copies, as by Dagster's Terminate, leaves nothing."""
    endless = spark.range(10**12, numPartitions=2).selectExpr("string(id) AS value")

    def run() -> None:
        register(spark)
        write(endless, topic="t", key="k")

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            until(lambda: copies() or done.done(), 120, "tasks copy")
        finally:
            spark.sparkContext.cancelAllJobs()
        with pytest.raises(Exception, match="cancelled"):
            done.result()
    assert rows("SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM harvest.written)") == [
        (0, 0)
    ]
    assert left() == (0, 0)
