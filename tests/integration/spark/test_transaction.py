"""Tables and messages together, or none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.errors import ConfigError, OutboxError
from harvest_dagster.spark import transaction

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.spark import Left, Rows

TABLE = """CREATE TABLE sales (
    day date, customer text, cents numeric(10, 2) NOT NULL, tags jsonb, names text[],
    PRIMARY KEY (day, customer))"""


@pytest.fixture(autouse=True)
def table(rows: Rows) -> None:
    """A business table."""
    rows(TABLE)


def sales(
    spark: SparkSession, count: int = 3, day: str = "2026-01-01", cents: int = 5
) -> DataFrame:
    """Rows for it."""
    return spark.range(count).selectExpr(
        f"date'{day}' AS day", "concat('c', id) AS customer", f"{cents} AS cents",
        "named_struct('id', id) AS tags", "array('a', string(null)) AS names",
    )  # fmt: skip


def events(spark: SparkSession, count: int = 3) -> DataFrame:
    """Messages about them."""
    return spark.range(count).selectExpr(
        "concat('c', id) AS key", "named_struct('id', id) AS value"
    )


def test_both(spark: SparkSession, database: str, rows: Rows, stashed: Stashed, left: Left) -> None:
    """Rows and messages are there, and it is told how many."""
    with transaction(spark, url=database) as write:
        write.append(sales(spark), "sales")
        write.stash(events(spark), topic="sales")
    written = write.written
    assert (written.messages, written.tables, written.repeated) == (3, {"sales": 3}, False)
    assert (written.first_id, written.last_id) == (1, 3)
    assert rows("SELECT customer, cents, tags, names FROM sales ORDER BY 1")[0] == (
        "c0", 5, {"id": 0}, ["a", None],
    )  # fmt: skip
    assert len(stashed()) == 3
    assert left() == (0, 0)


def test_neither(
    spark: SparkSession, database: str, rows: Rows, stashed: Stashed, left: Left
) -> None:
    """If the block raises, neither is there."""
    with pytest.raises(ZeroDivisionError), transaction(spark, url=database) as write:  # noqa: PT012
        write.append(sales(spark), "sales")
        write.stash(events(spark), topic="sales")
        raise ZeroDivisionError
    assert (rows("SELECT count(*) FROM sales"), stashed(), left()) == ([(0,)], [], (0, 0))


def test_empty_frames(spark: SparkSession, database: str, rows: Rows, left: Left) -> None:
    """No rows and no messages are written as such: a day without any replaces what was there."""
    for count in (3, 0):
        with transaction(spark, url=database, key=f"day {count}") as write:
            write.replace(sales(spark, count), "sales", day="2026-01-01")
            write.stash(events(spark, count), topic="sales")
        assert (write.written.messages, write.written.tables) == (count, {"sales": count})
    assert rows("SELECT count(*) FROM sales") == [(0,)]
    assert left() == (0, 0)


def test_an_empty_block(spark: SparkSession, database: str, stashed: Stashed) -> None:
    """A block that asks for nothing has not used up its key."""
    with transaction(spark, url=database, key="k") as write:
        pass
    assert (write.written.messages, write.written.repeated) == (0, False)
    with transaction(spark, url=database, key="k") as write:
        write.stash(events(spark), topic="sales")
    assert len(stashed()) == 3


def test_a_row_that_the_table_refuses(
    spark: SparkSession, database: str, stashed: Stashed, left: Left
) -> None:
    """What the table refuses takes the messages with it."""
    with pytest.raises(Exception, match="numeric field overflow"):  # noqa: PT012, SIM117
        with transaction(spark, url=database) as write:
            write.stash(events(spark), topic="sales")
            write.append(sales(spark, cents=10**9), "sales")
    assert (stashed(), left()) == ([], (0, 0))


def test_upsert(spark: SparkSession, database: str, rows: Rows) -> None:
    """Rows whose key is there are updated, others added."""
    for count, cents in ((2, 1), (3, 7)):
        with transaction(spark, url=database) as write:
            write.upsert(sales(spark, count, cents=cents), "sales", key=["day", "customer"])
    assert rows("SELECT customer, cents FROM sales ORDER BY 1") == [("c0", 7), ("c1", 7), ("c2", 7)]


def test_upsert_of_nothing_but_a_key(spark: SparkSession, database: str, rows: Rows) -> None:
    """Where every column is key, a row that is there counts as written."""
    rows("CREATE TABLE seen (day date, customer text, PRIMARY KEY (day, customer))")
    for count in (2, 3):
        with transaction(spark, url=database) as write:
            frame = sales(spark, count).select("day", "customer")
            write.upsert(frame, "seen", key=["day", "customer"])
        assert write.written.tables == {"seen": count}
    assert rows("SELECT count(*) FROM seen") == [(3,)]


def test_replace(spark: SparkSession, database: str, rows: Rows) -> None:
    """The rows of a day are replaced, those of another day stay."""
    for count, day in ((3, "2026-01-01"), (1, "2026-01-02"), (2, "2026-01-01")):
        with transaction(spark, url=database) as write:
            write.replace(sales(spark, count, day), "sales", day=day)
    assert rows("SELECT day::text, count(*) FROM sales GROUP BY 1 ORDER BY 1") == [
        ("2026-01-01", 2), ("2026-01-02", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("on_repeat", ["skip", "again"])
def test_repeated(spark: SparkSession, database: str, stashed: Stashed, on_repeat: Any) -> None:
    """With a key it is written once, unless it is asked for again."""
    for turn in range(2):
        with transaction(spark, url=database, key="day 1", on_repeat=on_repeat) as write:
            write.stash(events(spark), topic="sales")
        assert write.written.repeated == (turn == 1 and on_repeat == "skip")
    assert len(stashed()) == (3 if on_repeat == "skip" else 6)


def test_repeated_by_mistake(spark: SparkSession, database: str) -> None:
    """Or it is an error, before Spark does anything."""
    for _ in range(2):
        with transaction(spark, url=database, key="day 1", on_repeat="skip") as write:
            write.stash(events(spark), topic="sales")
    with pytest.raises(OutboxError, match="day 1 was written already, 3 messages"):
        transaction(spark, url=database, key="day 1", on_repeat="error").__enter__()


def test_again_once_for_each_launch(
    spark: SparkSession, database: str, stashed: Stashed, left: Left
) -> None:
    """What is tried again for one launch writes once, be two of its tries at work at once."""

    def again(launch: str) -> Any:
        return transaction(spark, url=database, key="k", on_repeat="again", launch=launch)

    with again("monday") as slow:
        slow.stash(events(spark), topic="sales")
        for _ in range(2):
            with again("monday") as write:
                write.stash(events(spark), topic="sales")
    assert (slow.written.repeated, write.written.repeated) == (True, True)
    assert (len(stashed()), left()) == (3, (0, 0))
    with again("tuesday") as write:
        write.stash(events(spark), topic="sales")
    assert (len(stashed()), write.written.repeated) == (6, False)


def test_several_keys(spark: SparkSession, database: str, stashed: Stashed) -> None:
    """What is written under several keys is written under each of them, by whom it may be."""
    for key, repeated in ((["day 1", "day 2"], False), ("day 2", True), (["day 2", "day 1"], True)):
        with transaction(spark, url=database, key=key) as write:
            write.stash(events(spark), topic="sales")
        assert write.written.repeated == repeated
    assert len(stashed()) == 3


def test_several_keys_of_which_some_are_known(
    spark: SparkSession, database: str, stashed: Stashed
) -> None:
    """Where only some were written, the write is refused with their names, but for `again`."""
    with transaction(spark, url=database, key="day 2") as write:
        write.stash(events(spark), topic="sales")
    days = ["day 1", "day 2", "day 3"]
    with pytest.raises(OutboxError, match="day 1 … day 3 some were written already: day 2;"):
        transaction(spark, url=database, key=days).__enter__()
    for on_repeat, repeated in (("again", False), ("skip", True)):
        with transaction(spark, url=database, key=days, on_repeat=on_repeat) as write:  # type: ignore[arg-type]
            write.stash(events(spark), topic="sales")
        assert write.written.repeated == repeated
    assert len(stashed()) == 6


def test_no_keys(spark: SparkSession, database: str) -> None:
    """A list of keys that is empty does not pass for a write that nobody repeats."""
    with pytest.raises(ConfigError, match="key: it is empty"):
        transaction(spark, url=database, key=[]).__enter__()


def test_a_failed_write_can_be_repeated(
    spark: SparkSession, database: str, stashed: Stashed, left: Left
) -> None:
    """What failed under a key has not been written, and the next try is no repetition."""
    bad = spark.range(3, numPartitions=3).selectExpr("if(id = 2, raise_error('no'), 'v') AS value")
    with pytest.raises(PySparkException), transaction(spark, url=database, key="k") as write:
        write.stash(bad, topic="sales")
    assert (stashed(), left()) == ([], (0, 0))
    with transaction(spark, url=database, key="k") as write:
        write.stash(events(spark), topic="sales")
    assert (len(stashed()), write.written.repeated) == (3, False)


def test_mistakes(spark: SparkSession, database: str) -> None:
    """What can't be meant is refused by a ConfigError of ours, not by Spark's."""
    with transaction(spark, url=database) as write:
        with pytest.raises(OutboxError, match="there is no table nowhere"):
            write.append(sales(spark), "nowhere")
        with pytest.raises(ConfigError, match="sales has no column dey"):
            write.replace(sales(spark), "sales", dey="2026-01-01")
        with pytest.raises(ConfigError, match="has no column x; there are day, customer"):
            write.append(spark.range(1).selectExpr("1 AS x"), "sales")
        with pytest.raises(ConfigError, match="replace: say which rows"):
            write.replace(sales(spark), "sales")
        with pytest.raises(ConfigError, match="nothing equals null"):
            write.replace(sales(spark), "sales", day=None)
        with pytest.raises(ConfigError, match="column value is int"):
            write.stash(spark.range(1).selectExpr("1 AS value"), topic="t")
        with pytest.raises(ConfigError, match="ask after the block"):
            write.written  # noqa: B018 - it raises
