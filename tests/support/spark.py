"""A Spark session that all tests of a worker share, and what they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.spark import register
from harvest_dagster.spark.class_archive import java_options

LOCAL: dict[str, Any] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": java_options(),
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with several Python workers, whose tasks are tried twice."""
    builder = SparkSession.builder.master("local[2,2]").config(map=LOCAL)
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Have tasks get their rows in batches of a thousand."""
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(setting, "1000")
    yield
    spark.conf.unset(setting)


Write = Callable[..., None]


@pytest.fixture
def write(database: str) -> Write:
    """Write a DataFrame into this test's outbox."""

    def append(frame: DataFrame, **options: Any) -> None:
        frame.write.format("outbox").mode("append").options(**{"url": database, **options}).save()

    return append


Rows = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def rows(database: str) -> Rows:
    """Ask this test's database."""

    def ask(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(database, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    return ask


Copies = Callable[[], bool]


@pytest.fixture
def copies(rows: Rows) -> Copies:
    """Return whether tasks have begun to copy."""
    copying = """SELECT count(*) FROM pg_stat_progress_copy
                  WHERE tuples_processed > 0 AND datname = current_database()"""
    return lambda: bool(rows(copying)[0][0])


Left = Callable[[], tuple[int, int]]


@pytest.fixture
def left(rows: Rows) -> Left:
    """Count the staging tables that are there, and those that are remembered."""

    def count() -> tuple[int, int]:
        tables = rows("SELECT count(*) FROM pg_tables WHERE schemaname = 'harvest_staging'")
        return tables[0][0], rows("SELECT count(*) FROM harvest.staged")[0][0]

    return count
