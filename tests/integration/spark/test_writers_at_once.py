"""Writers at once: each write once, and none waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harvest_dagster.ledger.once import Request
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import register, staging, task
from harvest_dagster.spark.binary import encoded
from harvest_dagster.spark.commit import commit
from harvest_dagster.spark.moves import TableMoves
from harvest_dagster.spark.staging import StagedColumn, Staging
from tests.support.spark_plans import ONCE, plan_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.spark import Left, Rows, Write


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
