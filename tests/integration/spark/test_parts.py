"""A large write becomes a part of the outbox, and is harvested like any other."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from harvest_dagster import Message
from harvest_dagster.errors import OutboxError
from harvest_dagster.outbox.privileges import give, spark_grants
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import staging, task
from harvest_dagster.spark.commit import Written, commit
from harvest_dagster.spark.moves import messages_move
from harvest_dagster.spark.options import Options
from harvest_dagster.spark.plan import Plan, make_plan
from harvest_dagster.spark.staging import Staged
from tests.integration.harvest.account import judge, read
from tests.integration.harvest.place import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.harvest.place import Place
    from tests.integration.harvest.running import StartTour
    from tests.integration.spark.conftest import Left, Rows, Write

COUNT = 1000
SCHEMA = StructType().add("key", StringType()).add("value", StringType())
PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'outbox'::regclass"
UNLOGGED = "SELECT relpersistence = 'u' FROM pg_class WHERE relname = '{}'"
WATCHED = {
    "a trigger": """CREATE TRIGGER seen BEFORE UPDATE ON outbox FOR EACH ROW
                    EXECUTE FUNCTION suppress_redundant_updates_trigger()""",
    "a publication": "CREATE PUBLICATION seen FOR TABLE outbox",
    "row security": "ALTER TABLE outbox ENABLE ROW LEVEL SECURITY",
    "a column of their own": "ALTER TABLE outbox ADD COLUMN own text NOT NULL",
}


def plan(url: str, topic: str = "t") -> Plan:
    """Plan a write that attaches what it stages, however little."""
    return make_plan(Options.read({"url": url, "topic": topic}), SCHEMA)


def stage(planned: Plan, first: int, count: int, attach_from: int | None = None) -> Staged:
    """Stage messages that count, as a task does; from a number on in a table of its own."""
    numbers = [str(number) for number in range(first, first + count)]
    batch = pa.record_batch({"key": pa.array(["part"] * count), "value": pa.array(numbers)})
    return task.copy(planned.url, planned.staging, [batch], planned.encoder, attach_from)


def finish(planned: Plan, *done: Staged, attach_from: int = 1) -> Written:
    """Commit what was staged."""
    request = planned.request(Options.read({"url": planned.url, "attachFrom": str(attach_from)}))
    with staging.connect(planned.url) as connection:
        staging.settle(connection, planned.staging, done)
        move = messages_move(planned.staging, planned.encoder, done)  # type: ignore[arg-type]
        written = commit(connection, request, [move])
        staging.discard(connection, planned.staging.name)
    return written


def test_from_a_number_on(spark: SparkSession, write: Write, rows: Rows, left: Left) -> None:
    """From a number of messages on, none is moved; below it, all are."""
    frame = spark.range(COUNT, numPartitions=4).selectExpr("string(id) AS value")
    write(frame, topic="t", attachFrom=COUNT + 1)
    assert (rows(PARTS), left()) == ([(0,)], (0, 0))
    write(frame, topic="t", attachFrom=COUNT)
    assert (rows(PARTS), left()) == ([(1,)], (1, 0))
    assert rows("SELECT count(*), count(DISTINCT id) FROM outbox") == [(2 * COUNT, 2 * COUNT)]


def test_large_tasks(spark: SparkSession, write: Write, rows: Rows, left: Left) -> None:
    """A task of many messages has a table of its own, and others have one together."""
    frame = spark.range(COUNT, numPartitions=4).selectExpr("string(id) AS value", "id")
    few = frame.where("id < 500 OR id % 4 = 0").select("value")
    write(few, topic="t", attachFrom=COUNT // 4)
    assert (rows(PARTS), left()) == ([(2,)], (2, 0))
    assert rows("SELECT count(*), count(DISTINCT kafka_value) FROM outbox") == [(625, 625)]


def test_a_large_stream(
    spark: SparkSession, database: str, rows: Rows, left: Left, tmp_path: Path
) -> None:
    """A stream's large batch becomes parts as well."""
    source = str(tmp_path / "source")
    spark.range(COUNT, numPartitions=2).selectExpr("string(id) AS value").write.parquet(source)
    stream = spark.readStream.schema("value string").parquet(source).writeStream.format("outbox")
    stream.options(url=database, topic="t", key="k", attachFrom=COUNT // 2)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.trigger(availableNow=True).start().awaitTermination()
    assert rows("SELECT count(*), count(DISTINCT kafka_value) FROM outbox") == [(COUNT, COUNT)]
    assert (rows(PARTS), left()) == ([(2,)], (2, 0))


def test_own_tables(database: str, rows: Rows, left: Left) -> None:
    """Of large tasks what counts is attached with its index, what does not is dropped."""
    planned = plan(database)
    stage(planned, 0, 3, attach_from=1)
    done = [stage(planned, first, 3, attach_from=1) for first in (3, 6)]
    small = stage(planned, 9, 2, attach_from=3)
    written = finish(planned, *done, small)
    found = "SELECT count(*), min(id), max(id), min(kafka_value::text), max(kafka_value::text)"
    first, last = ("\\x" + value.encode().hex() for value in ("10", "9"))
    assert rows(f"{found} FROM outbox") == [(8, written.first_id, written.last_id, first, last)]
    assert (written.messages, rows(PARTS), left()) == (8, [(3,)], (3, 0))
    primary = "SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid = {}::regclass"
    for each in done:
        assert rows(primary.format(f"'harvest_staging.part_{each.own}'")) == [(1,)]


def test_not_too_many_own_tables(
    database: str, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write does not make more tables than a leader can look into."""
    monkeypatch.setattr(task, "_MOST_OWN", 2)
    planned = plan(database)
    done = [stage(planned, number, 1, attach_from=1) for number in range(4)]
    assert [each.own is None for each in done] == [False, False, True, True]
    assert finish(planned, *done).messages == 4
    assert rows("SELECT count(DISTINCT kafka_value) FROM outbox") == [(4,)]


def test_large_messages_make_large_tasks(database: str) -> None:
    """Few messages are many if they are large; too much to hold is for the table of all."""
    planned = plan(database)
    batch = pa.record_batch({"key": pa.array(["k"]), "value": pa.array(["x" * 1_000_000])})
    for attach_from, is_large in ((1_000, True), (100_000, True), (200_000, False)):
        done = task.copy(database, planned.staging, [batch] * 40, planned.encoder, attach_from)
        assert (done.own is not None, done.rows) == (is_large, 40), attach_from


def test_a_late_task(database: str) -> None:
    """A large task whose write is over makes no table."""
    planned = plan(database)
    with staging.connect(database) as connection:
        staging.discard(connection, planned.staging.name)
    with pytest.raises(OutboxError, match="what was staged is gone"):
        stage(planned, 0, 2, attach_from=1)


@pytest.fixture
def behind(place: Place, database: str, start_tour: StartTour) -> None:
    """Attach a part whose ids the leader has left behind."""
    start_tour(place.config(), place.lease())
    place.put(10)
    planned = plan(database, place.topic)
    done = stage(planned, 0, COUNT)
    place.put(10)
    place.drained()
    finish(planned, done)


@pytest.mark.usefixtures("behind")
def test_behind_the_head(place: Place, database: str) -> None:
    """A part whose ids the leader has left behind is harvested soon; drained, it is dropped."""
    place.drained(10)
    until(lambda: len(read(place.kafka, place.topic)) == COUNT + 20)
    found = read(place.kafka, place.topic)
    part = [message for message in found if message.key == b"part"]
    assert [message.value for message in part] == [str(n).encode() for n in range(COUNT)]
    judge(place.stashed, [m for m in found if m.key != b"part"], "exactly_once")
    assert place.rows(PARTS) == [(1,)]
    plan(database)
    assert place.rows(PARTS) == [(0,)]


def test_indexes(database: str, rows: Rows) -> None:
    """A part has the indexes of its outbox, whatever they and the tables are called."""
    rows('ALTER TABLE outbox ADD CONSTRAINT "of % USING x" UNIQUE (id, kafka_topic)')
    rows('ALTER TABLE outbox RENAME TO "out USING box"')
    rows('CREATE INDEX "a "" b" ON "out USING box" (upper(kafka_topic) DESC) WHERE id > 1')
    options = Options.read({"url": database, "topic": "t", "outbox": '"out USING box"'})
    planned = make_plan(options, SCHEMA)
    finish(planned, stage(planned, 0, 2))
    found = rows(
        "SELECT split_part(pg_get_indexdef(indexrelid), ' USING btree ', 2), indisprimary"
        f" FROM pg_index WHERE indrelid = 'harvest_staging.part_{planned.staging.name}'::regclass"
        " ORDER BY 1"
    )
    assert found == [
        ("(id)", True),
        ("(id, kafka_topic)", False),
        ("(upper(kafka_topic) DESC) WHERE (id > 1)", False),
    ]


def test_times(database: str, rows: Rows) -> None:
    """Messages of a part are as old as its commit, like those that are moved."""
    planned = plan(database)
    done = stage(planned, 0, 2)
    rows("CREATE TABLE began AS SELECT clock_timestamp() AS at")
    finish(planned, done)
    assert rows("SELECT count(*) FROM outbox, began WHERE create_time > at") == [(2,)]


@pytest.mark.parametrize(
    "own",
    [
        "ADD UNIQUE (create_time, id)",
        "ADD CHECK (create_time > '2000-01-01')",
        "ADD own timestamp GENERATED ALWAYS AS (create_time AT TIME ZONE 'UTC') STORED",
        "ALTER create_time SET DEFAULT clock_timestamp()",
        "DROP create_time",
    ],
)
def test_times_of_their_own(database: str, rows: Rows, own: str) -> None:
    """Where more hangs on the times of an outbox, a part is attached with it."""
    rows(f"ALTER TABLE outbox {own}")
    planned = plan(database)
    finish(planned, stage(planned, 0, 2))
    assert rows(f"SELECT ({PARTS}), (SELECT count(*) FROM outbox)") == [(1, 2)]
    indexes = "SELECT count(*) FROM pg_index WHERE indrelid = {}::regclass"
    part = f"'harvest_staging.part_{planned.staging.name}'"
    assert rows(indexes.format(part)) == rows(indexes.format("'outbox'"))


@pytest.mark.parametrize("attach_from", [None, 1])
@pytest.mark.parametrize(
    ("own", "kinds"),
    [
        ("ADD CHECK (kafka_topic <> '')", 1),
        ('ALTER kafka_topic TYPE varchar(249) COLLATE "C"', 1),
        ("ADD own numeric(4, 2) NOT NULL DEFAULT '1.5'", 1),
        ("ADD own timestamptz DEFAULT now()", 1),
        ("ADD own word", 1),
        ("ADD own uuid DEFAULT gen_random_uuid()", 4),
        ("ADD own serial", 4),
    ],
)
def test_what_is_the_same(
    database: str, rows: Rows, own: str, kinds: int, attach_from: int | None
) -> None:
    """Messages of a part have in every column what they would have if they were moved."""
    rows("CREATE DOMAIN word AS text NOT NULL DEFAULT 'x' CHECK (VALUE <> '')")
    rows(f"ALTER TABLE outbox {own}")
    planned = plan(database)
    finish(planned, stage(planned, 0, 2, attach_from))
    planned = plan(database)
    finish(planned, stage(planned, 2, 2), attach_from=COUNT)
    row = "to_jsonb(outbox) - '{id,create_time,kafka_value}'::text[]"
    if "now()" in own:
        row = "now() - own < interval '1 hour'"
    assert rows(f"SELECT count(*), count(DISTINCT {row}) FROM outbox") == [(4, kinds)]
    assert rows(PARTS) == [(1,)]


def test_rows_hold_what_differs(database: str, rows: Rows) -> None:
    """What is the same in all messages of a large task is in none of their rows."""
    planned = plan(database)
    own = stage(planned, 0, 2, attach_from=1)
    finish(planned, own)
    held = f"""SELECT attname::text FROM pg_attribute
                WHERE attrelid = 'harvest_staging.part_{own.own}'::regclass AND attnum > 0
                  AND NOT attisdropped AND NOT atthasmissing ORDER BY 1"""
    assert rows(held) == [("id",), ("kafka_key",), ("kafka_partition",), ("kafka_value",)]


def test_what_is_not_drained_stays(database: str, rows: Rows) -> None:
    """A part of which something is left is not dropped."""
    planned = plan(database)
    finish(planned, stage(planned, 0, 2))
    rows("DELETE FROM outbox WHERE kafka_value = '0'")
    plan(database)
    assert rows(f"SELECT ({PARTS}), (SELECT count(*) FROM outbox)") == [(1, 1)]


def test_only_what_counts(database: str, rows: Rows) -> None:
    """Of attempts that lost nothing is left, and the ids that are told are those of the others."""
    planned = plan(database)
    stage(planned, 0, 3)
    written = finish(planned, stage(planned, 3, 3))
    found = "SELECT count(*), min(id), max(id), min(kafka_value), max(kafka_value) FROM outbox"
    assert rows(found) == [(3, written.first_id, written.last_id, b"3", b"5")]
    assert rows("SELECT count(*) FROM pg_attribute WHERE attname = 'harvest_attempt'") == [(0,)]


def test_a_commit_that_fails(database: str, rows: Rows, left: Left) -> None:
    """Where rows are missing nothing is attached, and nothing stays."""
    planned = plan(database)
    done = stage(planned, 0, 3)
    with pytest.raises(OutboxError, match="of 6 rows staged for outbox there are 3"):
        finish(planned, done, done)
    with staging.connect(database) as connection:
        staging.discard(connection, planned.staging.name)
    assert (rows(PARTS), left()) == ([(0,)], (0, 0))


@pytest.mark.parametrize("watched", WATCHED.values(), ids=WATCHED)
def test_watched_tables(database: str, rows: Rows, watched: str) -> None:
    """Where a part would be missed by something that watches the outbox, messages are moved."""
    assert rows(UNLOGGED.format(plan(database).staging.name)) == [(False,)]
    rows(watched)
    assert rows(UNLOGGED.format(plan(database).staging.name)) == [(True,)]


def test_another_role(database: str, rows: Rows) -> None:
    """A role that does not own the outbox moves messages, with its grants alone."""
    role = f"role_{uuid.uuid4().hex}"
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        give(admin, role, spark_grants(admin, TableName("outbox")))
    planned = plan(re.sub("//.*@", f"//{role}:x@", database))
    finish(planned, stage(planned, 0, COUNT))
    assert rows(f"SELECT ({PARTS}), (SELECT count(*) FROM outbox)") == [(0, COUNT)]
    rows(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.usefixtures("behind")
def test_before_what_follows(place: Place) -> None:
    """What is stashed after a part was attached comes after it, though its id is seen first."""
    place.stash([Message(place.topic, "part", "after")])
    place.drained(10)
    found = [m.value for m in read(place.kafka, place.topic) if m.key == b"part"]
    assert found == [*(str(n).encode() for n in range(COUNT)), b"after"]
