"""Reading an outbox, and what is parked, as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster import Message, stash
from harvest_dagster.outbox.privileges import spark_grants
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import give
from harvest_dagster.spark.outbox_reader import OutboxReader
from harvest_dagster.spark.source_options import SourceOptions

if TYPE_CHECKING:
    from tests.support.spark import Rows


def frame(spark: SparkSession, database: str, **options: Any) -> DataFrame:
    """Read this test's database."""
    return spark.read.format("outbox").options(url=database, **options).load()


@pytest.mark.parametrize("table", ["outbox", "goharvest_outbox"])
def test_what_waits(
    spark: SparkSession, database: str, connection: psycopg.Connection[Any], table: str
) -> None:
    """Messages come back as they were stashed, from as many tasks as there are to be."""
    with connection.transaction():
        stash(connection, [Message("t", str(n), f"é{n}", {"h": "x"}) for n in range(50)],
              outbox=table)  # fmt: skip
    read = frame(spark, database, outbox=table, partitions=7)
    assert read.rdd.getNumPartitions() == 7
    found = read.orderBy("id").collect()
    assert [row.id for row in found] == [*range(1, 51)]
    first = found[0]
    assert (first.topic, bytes(first.key), bytes(first.value)) == ("t", b"0", "é0".encode())
    assert [(each.key, bytes(each.value)) for each in first.headers] == [("h", b"x")]


def test_large_messages(spark: SparkSession, database: str, rows: Rows) -> None:
    """Batches end at their bytes, so that a task never holds thousands of large messages."""
    rows("""INSERT INTO outbox (kafka_topic, kafka_value)
            SELECT 't', convert_to(repeat('x', 5000000), 'UTF8') FROM generate_series(1, 20)""")
    reader = OutboxReader(SourceOptions.read({"url": database, "partitions": "1"}))
    (ids,) = reader.partitions()
    sizes = [batch.num_rows for batch in reader.read(ids)]
    assert (sum(sizes), max(sizes)) == (20, 7)
    assert frame(spark, database).selectExpr("sum(length(value))").collect()[0][0] == 100_000_000


def test_nothing_waits(spark: SparkSession, database: str) -> None:
    """An empty outbox is an empty DataFrame."""
    assert frame(spark, database).count() == 0
    assert frame(spark, database, table="parked").count() == 0


def test_what_is_parked(spark: SparkSession, database: str, rows: Rows) -> None:
    """Parked messages come with the reason."""
    rows("""INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_key, kafka_header_keys,
                                        kafka_header_values, reason, holds_key)
            VALUES ('shop', 0, 7, 'orders', 'a', '{}', '{}', 'too large', true)""")
    (row,) = frame(spark, database, table="parked").collect()
    assert (row.id, row.harvest, row.reason, row.value) == (7, "shop", "too large", None)


def test_with_just_its_grants(spark: SparkSession, database: str, rows: Rows) -> None:
    """A role with the grants of Spark can write."""
    role = "r" + database.rpartition("_")[2]
    rows(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    with psycopg.connect(database) as owner:
        give(owner, role, spark_grants(owner, TableName("outbox")))
    url = f"postgresql://{role}:x@{database.partition('@')[2]}"
    writer = spark.range(9).selectExpr("string(id) AS value").write.format("outbox")
    writer.mode("append").options(url=url, topic="t").save()
    assert rows("SELECT count(*) FROM outbox") == [(9,)]
    rows(f"DROP OWNED BY {role}")
    rows(f"DROP ROLE {role}")
