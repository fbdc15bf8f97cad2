from __future__ import annotations

from typing import Any, LiteralString

import psycopg
import pytest

from harvest_dagster import Message, stash
from harvest_dagster.outbox.check import check
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.names import TableName

NATIVE, GOHARVEST = TableName("outbox"), TableName("goharvest_outbox")
ROW = (
    "INSERT INTO outbox (create_time, kafka_topic, kafka_key, kafka_value)"
    " VALUES (now(), 't', 'k', 'v')"
)


def found(connection: psycopg.Connection[Any], table: TableName = NATIVE) -> list[Finding]:
    """What check says beyond the note on partitions, which goharvest's table always has."""
    return [one for one in check(connection, table) if "name their partition" not in one.what]


def retyped(column: str, kind: str) -> str:
    """SQL that gives a column a type it should not have."""
    return (
        f"ALTER TABLE outbox ALTER {column} DROP DEFAULT;"
        f"ALTER TABLE outbox ALTER {column} DROP NOT NULL;"
        f"ALTER TABLE outbox ALTER {column} TYPE {kind} USING NULL"
    )


TRIGGER: LiteralString = (
    "CREATE TRIGGER t BEFORE UPDATE ON outbox"
    " FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
)
MENDABLE = [
    ("ALTER TABLE outbox DROP kafka_key", "column kafka_key is missing"),
    ("ALTER TABLE outbox DROP kafka_topic", "column kafka_topic is missing"),
    ("ALTER TABLE outbox DROP kafka_header_values", "column kafka_header_values is missing"),
    (retyped("kafka_value", "jsonb"), "column kafka_value is jsonb, and should be bytea or text"),
    (retyped("kafka_key", "bigint"), "column kafka_key is bigint, and should be bytea or text"),
    (retyped("kafka_topic", "bytea"), "column kafka_topic is bytea, and should be text"),
    (retyped("kafka_header_values", "jsonb[]"), "column kafka_header_values is jsonb[]"),
    (retyped("kafka_header_keys", "name[]"), "column kafka_header_keys is name[], and should"),
    (retyped("create_time", "text"), "column create_time is text, and should be timestamp with"),
    (retyped("kafka_partition", "text"), "column kafka_partition is text, and should be integer"),
    ("ALTER TABLE outbox ADD leader_id text", "column leader_id is text, and should be uuid"),
    ('ALTER TABLE outbox ADD "a""b" int NOT NULL', 'column a"b is NOT NULL and has no default'),
    ("ALTER TABLE outbox ADD leader_id uuid NOT NULL", "column leader_id is NOT NULL and has no"),
    ("ALTER TABLE outbox ALTER kafka_partition SET NOT NULL", "column kafka_partition is NOT NULL"),
    ("ALTER TABLE outbox DROP CONSTRAINT outbox_pkey", "id has no primary key"),
    ("ALTER TABLE outbox ALTER id DROP IDENTITY", "id has no sequence of its own"),
    (
        "ALTER TABLE outbox ALTER id DROP IDENTITY, ALTER id SET DEFAULT txid_current()",
        "id has no sequence of its own",
    ),
    ("ALTER SEQUENCE outbox_id_seq CACHE 20", "the sequence caches 20 ids a session"),
    ("ALTER TABLE outbox RESET (autovacuum_vacuum_scale_factor)", "autovacuum waits for a share"),
    ("ALTER TABLE outbox SET UNLOGGED", "the table is UNLOGGED"),
    ("ALTER TABLE outbox ENABLE ROW LEVEL SECURITY", "row level security is on"),
]


@pytest.mark.parametrize(("broken", "what"), MENDABLE)
def test_finds_and_mends(
    connection: psycopg.Connection[Any], broken: LiteralString, what: str
) -> None:
    """A table broken in one way has that one finding, and its mend makes it vanish."""
    connection.execute(broken)
    [finding] = found(connection)
    assert what in finding.what
    for statement in finding.mend:
        connection.execute(statement)
    assert found(connection) == []


@pytest.mark.parametrize("column", ["kafka_header_keys", "kafka_header_values"])
def test_mends_headers_so_that_they_are_never_null(
    connection: psycopg.Connection[Any], column: str
) -> None:
    """A column of headers that was missing is empty where nobody gives any."""
    connection.execute(f"ALTER TABLE outbox DROP {column}")
    [finding] = found(connection)
    connection.execute(finding.mend[0])
    connection.execute(ROW)
    assert connection.execute(f"SELECT {column} FROM outbox").fetchone() == ([],)


def test_mends_an_id_that_is_missing(connection: psycopg.Connection[Any]) -> None:
    """An id that is missing is mended in steps, until the table takes messages again."""
    connection.execute("ALTER TABLE outbox DROP id")
    while findings := found(connection):
        for finding in findings:
            for statement in finding.mend:
                connection.execute(statement)
    assert stash(connection, Message("t", "k", "v"), ids=True) == [1]


def test_new_sequence_goes_on(connection: psycopg.Connection[Any]) -> None:
    """The sequence that check gives to a table goes on after the ids that are there."""
    connection.execute(ROW + ", " + ROW.rpartition("VALUES ")[2])
    connection.execute("ALTER TABLE outbox ALTER id DROP IDENTITY")
    for finding in found(connection):
        for statement in finding.mend:
            connection.execute(statement)
    assert stash(connection, Message("t", "k", "v"), ids=True) == [3]


@pytest.mark.parametrize(
    ("kind", "using", "kept"),
    [
        ("jsonb", "'{\"a\": 1}'", b'{"a": 1}'),
        ("integer", "5", b"5"),
        ("char(3)", "'é'", b"\xc3\xa9"),
    ],
)
def test_mending_a_type_keeps_values(
    connection: psycopg.Connection[Any], kind: str, using: str, kept: bytes
) -> None:
    """A column of a wrong type keeps its values as the text that they were."""
    connection.execute(ROW)
    connection.execute(f"ALTER TABLE outbox ALTER kafka_value TYPE {kind} USING {using}")
    for statement in found(connection)[0].mend:
        connection.execute(statement)
    assert connection.execute("SELECT kafka_value FROM outbox").fetchone() == (kept,)


@pytest.mark.parametrize(
    ("broken", "table", "level", "what"),
    [
        ("DROP SCHEMA harvest CASCADE", NATIVE, Level.ERROR, "lacks 0001 stash"),
        ("SELECT", TableName("x", "y"), Level.ERROR, "no table y.x: run `harvest outbox create"),
        ("SELECT", TableName("A b"), Level.ERROR, 'outbox create --outbox "A b"`'),
        ("CREATE VIEW v AS TABLE outbox", TableName("v"), Level.ERROR, "v is a view or foreign"),
        (retyped("kafka_header_keys", "jsonb"), NATIVE, Level.ERROR, "kafka_header_keys is jsonb"),
        (
            TRIGGER,
            NATIVE,
            Level.NOTE,
            "triggers run for each message",
        ),
    ],
)
def test_finds_what_it_can_not_mend(
    connection: psycopg.Connection[Any],
    broken: LiteralString,
    table: TableName,
    level: Level,
    what: str,
) -> None:
    """What no statement mends is found, and says what to do."""
    connection.execute(broken)
    [finding] = found(connection, table)
    assert (finding.level, what in finding.what, finding.mend) == (level, True, ())


def test_note_on_partitions(connection: psycopg.Connection[Any]) -> None:
    """Goharvest's table has nothing but a note that it has no partition, which can be added."""
    [finding] = check(connection, GOHARVEST)
    assert (finding.level, finding.safe) == (Level.NOTE, False)
    connection.execute(finding.mend[0])
    assert check(connection, GOHARVEST) == []


@pytest.mark.parametrize("name", ["outbox_id_seq", "outbox_pkey"])
def test_not_even_a_table(connection: psycopg.Connection[Any], name: str) -> None:
    """A sequence or index by that name is an error and no crash."""
    assert Level.ERROR in {finding.level for finding in check(connection, TableName(name))}


def test_partitioned_table(connection: psycopg.Connection[Any]) -> None:
    """A partitioned table with a unique id is fit to be an outbox."""
    connection.execute("CREATE TABLE parted (LIKE outbox INCLUDING ALL) PARTITION BY RANGE (id)")
    assert found(connection, TableName("parted")) == []
