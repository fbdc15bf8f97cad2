"""Columns of every type and name that both Spark and PostgreSQL take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from harvest_dagster.spark import transaction

if TYPE_CHECKING:
    from tests.support.spark import Rows

NAMES = ("attempt", "100%", "%s", "a b", 'q"q', "{}", "SELECT", "é")


def test_columns_of_any_name(spark: SparkSession, database: str, rows: Rows) -> None:
    """A column may have any name that both Spark and PostgreSQL take."""
    quoted = ['"{}"'.format(name.replace('"', '""')) for name in NAMES]
    rows(
        f"CREATE TABLE odd ({', '.join(f'{name} bigint' for name in quoted)}, UNIQUE ({quoted[1]}))"
    )
    frame = spark.range(2).select(*(F.col("id").alias(name) for name in NAMES))
    with transaction(spark, url=database) as write:
        write.upsert(frame, "odd", key=[NAMES[1]])
    with transaction(spark, url=database) as write:
        write.replace(frame, "odd", **{NAMES[2]: 0}, **{NAMES[0]: 0})
        rows(f"DELETE FROM odd WHERE {quoted[1]} = 1")
    assert rows(f"SELECT {', '.join(quoted)} FROM odd ORDER BY 1") == [(0,) * 8, (1,) * 8]


TYPES = {
    "boolean": "true", "smallint": "smallint(7)", "integer": "7", "bigint": "bigint(7)",
    "real": "float(1.5)", "double precision": "double(1.5)", "numeric(9,3)": "1.125",
    "text": "'é'", "varchar(3)": "'abc'", "bytea": "unhex('00ff')", "date": "date'1999-12-31'",
    "timestamptz": "timestamp'2026-01-02 03:04:05.678'",
    "timestamp": "timestamp_ntz'1999-01-02 03:04:05'",
    "jsonb": "map('k', array(1))", "json": "array(1, 2)", "integer[]": "array(1, int(null))",
    "uuid": "'00000000-0000-0000-0000-000000000001'", "char(5)": "'abc'", "bit(3)": "'101'",
    "bpchar": "'abc'", "char(3)[]": "array('abc')", "short_text": "'abc'",
}  # fmt: skip


def test_types(spark: SparkSession, database: str, rows: Rows) -> None:
    """Every type goes into the column that one would expect, and so does null."""
    rows("CREATE DOMAIN short_text AS varchar(3)")
    columns = [f"c{n}" for n in range(len(TYPES))]
    rows(
        f"CREATE TABLE wide ({', '.join(f'{c} {t}' for c, t in zip(columns, TYPES, strict=True))})"
    )
    given = [f"if(id = 0, {v}, null) AS {c}" for c, v in zip(columns, TYPES.values(), strict=True)]
    with transaction(spark, url=database) as write:
        write.append(spark.range(2, numPartitions=1).selectExpr(*given), "wide")
    at_utc = {"timestamptz": " AT TIME ZONE 'UTC'"}
    texts = [f"(c{n}{at_utc.get(type_, '')})::text" for n, type_ in enumerate(TYPES)]
    found = rows(f"SELECT {', '.join(texts)} FROM wide ORDER BY c1 NULLS LAST")
    assert found[1] == (None,) * len(TYPES)
    assert found[0] == (
        "true", "7", "7", "7", "1.5", "1.5", "1.125", "é", "abc", "\\x00ff", "1999-12-31",
        "2026-01-02 03:04:05.678", "1999-01-02 03:04:05", '{"k": [1]}', "[1,2]", "{1,NULL}",
        "00000000-0000-0000-0000-000000000001", "abc", "101", "abc", "{abc}", "abc",
    )  # fmt: skip


LISTS = ["array(1.50, null)", "array(unhex('00ff'))", "array(double(1e-5))", "array('a')"]


def test_lists_in_json(spark: SparkSession, database: str, rows: Rows) -> None:
    """A list in a column of JSON is what `to_json` makes of it, and no array written as JSON."""
    rows("CREATE TABLE lists (n int, a json, b jsonb, wanted text)")
    for n, given in enumerate(LISTS):
        columns = [f"{n} AS n", f"{given} AS a", f"{given} AS b", f"to_json({given}) AS wanted"]
        with transaction(spark, url=database) as write:
            write.append(spark.range(1).selectExpr(*columns), "lists")
    assert rows("SELECT n FROM lists WHERE a::text <> wanted OR b <> wanted::jsonb") == []
    assert rows("SELECT count(a), count(b) FROM lists") == [(4, 4)]


@pytest.mark.parametrize("type_", ["varchar(2)", "char(2)", "char(2)[]", "short_text"])
def test_too_long_for_its_column(
    spark: SparkSession, database: str, rows: Rows, type_: str
) -> None:
    """Text is never cut short to fit."""
    rows("CREATE DOMAIN short_text AS varchar(2)")
    rows(f"CREATE TABLE short (c {type_})")
    value = "array('abc')" if type_.endswith("]") else "'abc'"
    with pytest.raises(Exception, match="too long"), transaction(spark, url=database) as write:
        write.append(spark.range(1).selectExpr(f"{value} AS c"), "short")
