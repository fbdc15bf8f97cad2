"""What of a DataFrame becomes which message."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from harvest_dagster import Message
from tests.support.hostile import TEXTS

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.spark import Left, Rows, Write

TABLES = ["outbox", "goharvest_outbox"]


def by_key(messages: list[Message]) -> list[Message]:
    """In an order that does not depend on which task was first."""
    return sorted(messages, key=lambda message: message.key or b"")


@pytest.mark.parametrize("table", TABLES)
def test_plain(spark: SparkSession, write: Write, stashed: Stashed, table: str) -> None:
    """Text goes out as UTF-8; a null value is a tombstone; the topic may be an option."""
    write(spark.createDataFrame([("a", "é\n"), ("b", None)], "key string, value string"),
          topic="orders", outbox=table)  # fmt: skip
    assert by_key(stashed(table)) == [Message("orders", "a", "é\n"), Message("orders", "b", None)]


@pytest.mark.parametrize("table", TABLES)
def test_other_encodings(
    spark: SparkSession, write: Write, database: str, stashed: Stashed, table: str
) -> None:
    """Text is not garbled where a database gives its clients another encoding than UTF-8."""
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET client_encoding = LATIN1')
    frame = spark.sql("SELECT 'é' AS key, 'ü' AS value, map('ß', 'ö') AS headers")
    write(frame, topic="orders", outbox=table)
    assert stashed(table) == [Message("orders", "é", "ü", {"ß": "ö"})]


def test_bytes_partitions_and_topics(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """Bytes stay as they are; each message may name its topic and its partition."""
    frame = spark.createDataFrame(
        [(b"\x00\xff", b"", "one", 3), (None, b"x", None, None)],
        "key binary, value binary, topic string, partition int",
    )
    write(frame, topic="other")
    assert by_key(stashed()) == [
        Message("other", None, b"x"),
        Message("one", b"\x00\xff", b"", (), 3),
    ]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("form", ["map<string,string>", "array<struct<key:string,value:string>>"])
def test_headers(
    spark: SparkSession, write: Write, stashed: Stashed, table: str, form: str
) -> None:
    """Headers come as a map, or as pairs whose keys repeat; none, null and empty are all fine."""
    pairs: list[Any] = [[("h", "é"), ("i", "")], [], None]
    if form.startswith("array"):
        pairs[0] = [("h", "é"), ("h", "")]
    given = [dict(each) if each is not None and form.startswith("map") else each for each in pairs]
    frame = spark.createDataFrame(
        [(str(n), "v", each) for n, each in enumerate(given)],
        f"key string, value string, headers {form}",
    )
    write(frame, topic="t", outbox=table)
    wanted = [Message("t", str(n), "v", each or ()) for n, each in enumerate(pairs)]
    assert by_key(stashed(table)) == wanted


def test_bytes_in_headers(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """A header's value may be bytes, or null."""
    frame = spark.createDataFrame(
        [("v", [Row(key="a", value=b"\xff"), Row(key="b", value=None)])],
        "value string, headers array<struct<key:string,value:binary>>",
    )
    write(frame, topic="t")
    assert stashed() == [Message("t", None, "v", [("a", b"\xff"), ("b", None)])]


def test_json_is_what_spark_would_write(spark: SparkSession, write: Write, rows: Rows) -> None:
    """A struct becomes the JSON that `to_json` makes of it."""
    frame = spark.createDataFrame(
        [(1, -2.5, True, Decimal("1.50"), 'é"\\\n', date(2026, 1, 2), [1, 2], {"k": "v"}, None)],
        "a int, b double, c boolean, d decimal(5,2), e string, f date, g array<int>,"
        " h map<string,string>, i string",
    )
    whole = F.struct("*")
    write(frame.select(whole.alias("value"), F.to_json(whole).alias("key")), topic="t")
    assert rows("SELECT count(*) FROM outbox WHERE kafka_value = kafka_key") == [(1,)]


SCALARS = [
    "float(0.1)", "float(1e-5)", "float(16777216)", "float(3e38)", "double(1e-5)", "double(1e7)",
    "double(123456789012)", "double('nan')", "float('-infinity')", "-0.0d", "0.0000001",
    "1.50", "map(true, 1)", "map(7L, null)", "array(map('a', 0.1))", "unhex('00ff')", "null",
    "named_struct('a', null, 'b', named_struct())", "date'0100-01-01'", "'\\u2028\\u0000/\\u007f'",
]  # fmt: skip


def test_every_value_in_json(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """Numbers, keys of maps and whatever is in them are written as `to_json` does."""
    whole = F.expr(f"struct({', '.join(SCALARS)})")
    frame = spark.range(1).select(F.to_json(whole).alias("key"), whole.alias("value"))
    write(frame, topic="t")
    (message,) = stashed()
    assert message.value == message.key


def test_hostile_text(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """Whatever text is in a DataFrame comes out as it is, also within JSON and in headers."""
    frame = spark.createDataFrame([(text,) for text in TEXTS], "key string").select(
        "key",
        F.struct("key", F.create_map("key", "key").alias("map")).alias("value"),
        F.create_map(F.lit("h"), "key").alias("headers"),
    )
    write(frame, topic="t")
    found = {(m.key or b"").decode(): m for m in stashed()}
    assert found.keys() == {*TEXTS}
    for text, message in found.items():
        assert json.loads(message.value or b"") == {"key": text, "map": {text: text}}
        assert [*message.headers] == [("h", text.encode())]


def test_times_in_json(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """A time in JSON is ISO 8601, with its zone."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    frame = spark.createDataFrame([(Row(at=at),)], "value struct<at: timestamp>")
    write(frame, topic="t")
    assert stashed()[0].value == b'{"at":"2026-01-02T03:04:05.678000+00:00"}'


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_anything(
    spark: SparkSession, write: Write, stashed: Stashed, left: Left, count: int
) -> None:
    """An empty DataFrame, and partitions without a row, are no trouble and leave nothing."""
    write(spark.range(count, numPartitions=3).selectExpr("'v' AS value"), topic="t")
    assert len(stashed()) == count
    assert left() == (0, 0)


@pytest.mark.parametrize("tasks", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_many_partitions(spark: SparkSession, write: Write, rows: Rows, tasks: int) -> None:
    """Each of many tasks adds its part."""
    write(spark.range(5000, numPartitions=tasks).selectExpr("string(id) AS value"), topic="t")
    counted = "SELECT count(DISTINCT kafka_value), count(*) FROM outbox"
    assert rows(counted) == [(5000, 5000)]


def test_large(spark: SparkSession, write: Write, rows: Rows) -> None:
    """Values of 5 MB go through."""
    frame = spark.range(12, numPartitions=1).selectExpr("repeat('x', 5 * 1024 * 1024) AS value")
    write(frame, topic="t", maxMessageBytes=6 * 1024 * 1024)
    sizes = "SELECT count(*), min(length(kafka_value)) FROM outbox"
    assert rows(sizes) == [(12, 5 * 1024 * 1024)]


def test_skewed(spark: SparkSession, write: Write, rows: Rows, left: Left) -> None:
    """All rows may be in one partition of many, with nothing in those beside it."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    frame = spark.range(20_000).selectExpr("'one' AS key", "string(id) AS value")
    skewed = frame.repartition(8, "key")
    sizes = [
        count
        for (count,) in skewed.groupBy(F.spark_partition_id()).count().select("count").collect()
    ]
    write(skewed, topic="t")
    spark.conf.unset("spark.sql.adaptive.enabled")
    assert (sizes, skewed.rdd.getNumPartitions()) == ([20_000], 8)
    assert rows("SELECT count(DISTINCT kafka_value), count(*) FROM outbox") == [(20_000, 20_000)]
    assert left() == (0, 0)


@pytest.mark.parametrize(
    ("column", "values"),
    [("string", ["B", "a", "Z", None, "é"]), ("decimal(6,1)", [10, 9, -2, None, 100])],
)
def test_order_is_sparks(
    spark: SparkSession, write: Write, stashed: Stashed, column: str, values: list[Any]
) -> None:
    """PostgreSQL sorts as Spark does: text by its bytes, decimals as numbers, nulls first."""
    given = [(None if v is None else str(v),) for v in values]
    frame = spark.createDataFrame(given, "at string").selectExpr(f"cast(at AS {column}) AS at")
    frame = frame.selectExpr("coalesce(string(at), 'null') AS value", "at")
    write(frame, topic="t", orderBy="at")
    wanted = [row.value.encode() for row in frame.orderBy("at").collect()]
    assert [message.value for message in stashed()] == wanted


def test_order(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """With `orderBy` messages are stashed in that order, whatever tasks they come from."""
    frame = spark.range(1000, numPartitions=7).selectExpr(
        "string(id % 10) AS key", "string(id) AS value", "id % 100 AS at", "id AS n"
    )
    write(frame.repartition(5, "n"), topic="t", orderBy="at, n")
    wanted = [str(n) for n in sorted(range(1000), key=lambda n: (n % 100, n))]
    assert [(m.value or b"").decode() for m in stashed()] == wanted
