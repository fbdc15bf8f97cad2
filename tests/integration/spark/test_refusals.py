"""What is wrong is said before a task starts, or by the message that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from tests.support.spark import Left, Rows, Write

BEFORE = [
    (["1 AS value"], {"topic": "t"}, "column value is int; give string, binary or a struct"),
    (["'v' AS value", "1 AS key"], {"topic": "t"}, "column key is int; give string or binary"),
    (["'v' AS value"], {}, "there is no column topic: give one, or the option `topic`"),
    (["'v' AS valu"], {"topic": "t"}, "column valu (string) is no part of a message"),
    (["'k' AS key"], {"topic": "t"}, "there is no column value"),
    (["'v' AS value", "'1' AS partition"], {"topic": "t"}, "column partition is string; give int"),
    (["'v' AS value", "array(1) AS headers"], {"topic": "t"}, "column headers is array<int>"),
    (["'v' AS value"], {"topic": "t", "orderBy": "at"}, "orderBy: there is no column at"),
    (["'v' AS value", "array(1) AS at"], {"topic": "t", "orderBy": "at"}, "at is array<int>"),
    (["'v' AS value"], {"topic": "a b"}, "topic: 'a b' is not legal"),
    (
        ["struct(id, array(interval 1 day) AS a) AS value"],
        {"topic": "t"},
        "column value.a.element is interval day",
    ),
    (["struct(parse_json('1') AS v) AS value"], {"topic": "t"}, "column value.v is variant"),
    (["parse_json('1') AS value"], {"topic": "t"}, "column value is variant"),
    (["map(unhex('00'), 1) AS value"], {"topic": "t"}, "column value.key is binary, which is no"),
    (["struct(time'12:00:00' AS t) AS value"], {"topic": "t"}, "column value.t is time"),
    (["'v' AS value"], {"topik": "t"}, "topik: no such option; the nearest is topic"),
    (["'v' AS value"], {"topic": "t", "onRepeat": "maybe"}, "onRepeat: Input should be"),
    (["'v' AS value"], {"topic": "t", "outbox": "nowhere"}, "there is no table nowhere"),
    (["'v' AS value"], {"topic": "t", "outbox": "a b"}, "is no table name"),
]


@pytest.mark.parametrize(("columns", "options", "said"), BEFORE)
def test_before_a_task_starts(
    spark: SparkSession, write: Write, left: Left, columns: list[str], options: Any, said: str
) -> None:
    """A wrong column or option is named by the planning, with what is accepted."""
    with pytest.raises(PySparkException) as raised:
        write(spark.range(1).selectExpr(*columns), **options)
    assert said in str(raised.value)
    assert any(f"{kind}Error" in str(raised.value) for kind in ("Config", "Outbox", "Message"))
    assert left() == (0, 0)


def test_overwrite(spark: SparkSession, database: str) -> None:
    """An outbox is appended to, and never replaced."""
    writer = spark.range(1).selectExpr("'v' AS value").write.format("outbox")
    with pytest.raises(PySparkException, match="appended to"):
        writer.mode("overwrite").options(url=database, topic="t").save()


class Wrong(NamedTuple):
    """A column of a message that can't be, and what is said of it."""

    column: str
    options: dict[str, Any]
    said: str


WRONG = [
    Wrong("'a b' AS topic", {}, "topic: 'a b' is not legal"),
    Wrong("string(null) AS topic", {}, "topic: it is null in a row"),
    Wrong(
        "repeat('x', 2000) AS key", {"topic": "t", "maxMessageBytes": 1000}, "the limit is 1,000"
    ),
    Wrong("-1 AS partition", {"topic": "t"}, "partition: -1 is not from 0"),
    Wrong(
        "string(null) AS key", {"topic": "t", "outbox": "goharvest_outbox"}, "kafka_key is NOT NULL"
    ),
    Wrong(
        "1 AS partition", {"topic": "t", "outbox": "goharvest_outbox"}, "no column kafka_partition"
    ),
]


ONE, *OTHERS = WRONG


@pytest.mark.parametrize(
    "wrong", [ONE, *(pytest.param(other, marks=pytest.mark.long) for other in OTHERS)]
)
def test_a_message(spark: SparkSession, write: Write, left: Left, rows: Rows, wrong: Wrong) -> None:
    """One message that could never go out fails the write, with nothing written."""
    frame = spark.range(10, numPartitions=2).selectExpr("'v' AS value", wrong.column)
    with pytest.raises(PySparkException) as raised:
        write(frame, **wrong.options)
    assert wrong.said in str(raised.value)
    assert rows(f"SELECT count(*) FROM {wrong.options.get('outbox', 'outbox')}") == [(0,)]
    assert left() == (0, 0)


def test_no_password_in_an_error(spark: SparkSession, write: Write) -> None:
    """A server that does not answer is named without the password."""
    with pytest.raises(PySparkException) as raised:
        write(spark.range(1).selectExpr("'v' AS value"), topic="t",
              url="postgresql://me:hunter2@127.0.0.1:1/db")  # fmt: skip
    assert "Connection refused" in str(raised.value)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "older",
    [
        "DROP TABLE harvest.staged, harvest.written",
        "ALTER TABLE harvest.written DROP COLUMN stream",
    ],
)
def test_a_database_of_an_older_version(
    spark: SparkSession, write: Write, rows: Rows, older: str
) -> None:
    """Where the schema lacks what Spark needs, it is said how to add it."""
    rows(older)
    with pytest.raises(PySparkException, match="run `harvest outbox migrate`"):
        write(spark.range(1).selectExpr("'v' AS value"), topic="t")
