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
from harvest_dagster.spark import staging
from harvest_dagster.spark.commit import Written, commit
from harvest_dagster.spark.moves import messages_move
from harvest_dagster.spark.options import Options
from harvest_dagster.spark.plan import Plan, make_plan
from harvest_dagster.spark.staging import Staged
from tests.integration.harvest.account import judge, read
from tests.integration.harvest.place import until

if TYPE_CHECKING:
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


def stage(planned: Plan, first: int, count: int) -> Staged:
    """Stage messages that count, as a task does."""
    numbers = [str(number) for number in range(first, first + count)]
    batch = pa.record_batch({"key": pa.array(["part"] * count), "value": pa.array(numbers)})
    return staging.copy(planned.url, planned.staging, [batch], planned.encoder)


def finish(planned: Plan, *done: Staged, attach_from: int = 1) -> Written:
    """Commit what was staged."""
    request = planned.request(Options.read({"url": planned.url, "attachFrom": str(attach_from)}))
    with staging.connect(planned.url) as connection:
        staging.settle(connection, planned.staging, done)
        move = messages_move(planned.staging, planned.encoder)  # type: ignore[arg-type]
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
