"""What is left of writes that died is cleaned up, and never what is still in use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest
from pyspark.sql import SparkSession

from harvest_dagster.errors import OutboxError
from harvest_dagster.spark import staging, task
from harvest_dagster.spark.clean import DEAD_AFTER, clean
from harvest_dagster.spark.staging import Staging
from tests.support.spark_plans import ONCE, plan_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.spark import Left, Rows, Write


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
