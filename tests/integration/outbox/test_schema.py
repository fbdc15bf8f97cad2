from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message, OutboxError, stash
from harvest_dagster.outbox.check import check
from harvest_dagster.outbox.schema import Kind, create, migrate, to_native
from harvest_dagster.outbox.stats import stats
from harvest_dagster.postgres.finding import Level
from harvest_dagster.postgres.migrations import migrate as migrate_schema
from harvest_dagster.postgres.migrations import migrations, pending
from harvest_dagster.postgres.names import TableName

if TYPE_CHECKING:
    from tests.support.databases import Stashed

OUTBOX, GOHARVEST, NEW = map(TableName, ("outbox", "goharvest_outbox", "new"))


@pytest.mark.parametrize("kind", Kind)
def test_create_once(connection: psycopg.Connection[Any], kind: Kind) -> None:
    """The first create makes the table, the second finds it."""
    assert [create(connection, NEW, kind).is_new for _ in range(2)] == [True, False]


def test_create_outside_of_harvest(connection: psycopg.Connection[Any]) -> None:
    """A table is never made in the schema harvest, not even by a role of that name."""
    connection.execute("SET search_path = harvest, public")
    create(connection, NEW, Kind.NATIVE)
    assert connection.execute("SELECT to_regclass('public.new') IS NOT NULL").fetchone() == (True,)


def test_create_changes_nothing(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """A create of a table that is there leaves its rows, even when it is of the other kind."""
    stash(connection, Message("t", "k", "v"))
    create(connection, OUTBOX, Kind.GOHARVEST)
    connection.commit()
    assert stashed() == [Message("t", "k", "v")]


def test_create_over_another_table(connection: psycopg.Connection[Any]) -> None:
    """A table of that name which is no outbox is an error, and is left alone."""
    connection.execute("CREATE TABLE new (n int)")
    with pytest.raises(OutboxError, match="new is no outbox"):
        create(connection, NEW, Kind.NATIVE)


def test_two_create_at_once(database: str, connection: psycopg.Connection[Any]) -> None:
    """Of several programs that create the same table at once, one makes it and none fails."""
    connection.execute("DROP SCHEMA harvest CASCADE")
    connection.commit()

    def once(_: int) -> bool:
        with psycopg.connect(database) as own:
            return create(own, NEW, Kind.NATIVE).is_new

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(once, range(4))) == [False, False, False, True]


@pytest.mark.parametrize("kind", Kind)
def test_created_is_fit(connection: psycopg.Connection[Any], kind: Kind) -> None:
    """Nothing that is created has an error or a warning."""
    create(connection, NEW, kind)
    assert {finding.level for finding in check(connection, NEW)} <= {Level.NOTE}


def test_migrations_once(connection: psycopg.Connection[Any]) -> None:
    """All migrations are applied to a new database, and none of them again."""
    connection.execute("DROP SCHEMA harvest CASCADE")
    applied = [migrate_schema(connection) for _ in range(2)]
    assert (applied, pending(connection)) == ([migrations(), []], [])


def test_migrations_are_all_or_none(connection: psycopg.Connection[Any]) -> None:
    """Migrations that the caller rolls back have left nothing."""
    connection.execute("DROP SCHEMA harvest CASCADE")
    connection.commit()
    migrate_schema(connection)
    connection.rollback()
    assert pending(connection) == migrations()


def test_migrate_mends_what_is_safe(connection: psycopg.Connection[Any]) -> None:
    """Migrate mends each finding that needs no choice, tells it, and leaves the others."""
    connection.execute("ALTER TABLE outbox RESET (autovacuum_vacuum_scale_factor)")
    connection.execute("ALTER SEQUENCE outbox_id_seq CACHE 5")
    connection.execute("ALTER TABLE outbox DROP kafka_partition")
    connection.execute("DROP SCHEMA harvest CASCADE")
    mended = migrate(connection, OUTBOX)
    left = check(connection, OUTBOX)
    assert (len(mended), [finding.level for finding in left]) == (3, [Level.NOTE])


def test_migrate_nothing(connection: psycopg.Connection[Any]) -> None:
    """A table that is as it should be is not touched."""
    assert migrate(connection, OUTBOX) == []


def test_to_native_keeps_messages(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """Goharvest's rows are the same messages in a table of bytes, headers and nulls included."""
    messages = [
        Message("t", r"\x41", r"\x41", [("a", r"\x42"), ("a", None), ("", ""), ("ü", "ü")]),
        Message("t", "", None),
    ]
    stash(connection, messages, outbox="goharvest_outbox")
    assert to_native(connection, GOHARVEST)
    connection.commit()
    assert stashed("goharvest_outbox") == messages


def test_to_native_takes_bytes(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """A table that was goharvest's takes what only a table of bytes can."""
    message = Message("t", None, b"\xff\0", {"h": b"\xff"}, 3)
    to_native(connection, GOHARVEST)
    stash(connection, [message], outbox="goharvest_outbox")
    stash(connection, message, outbox="goharvest_outbox")
    connection.commit()
    assert stashed("goharvest_outbox") == [message, message]


def test_to_native_once(connection: psycopg.Connection[Any]) -> None:
    """A table of bytes need not be turned into one."""
    to_native(connection, GOHARVEST)
    assert [to_native(connection, table) for table in (GOHARVEST, OUTBOX, NEW)] == [False] * 3


def test_stats(connection: psycopg.Connection[Any]) -> None:
    """Stats count what waits: records, ids, bytes of values, age, and the fullest topics."""
    messages = [Message("a", "k", "é"), Message("b", "k", None), Message("b", "k", "123")]
    ids = stash(connection, messages, ids=True)
    connection.commit()
    found = stats(connection, OUTBOX, topics=1)
    assert (found.records, found.first_id, found.last_id) == (3, ids[0], ids[-1])
    assert (found.value_bytes, found.topics) == (5, {"b": 2})
    assert (found.oldest_seconds or 0) > 0
    assert found.disk_bytes > 0


@pytest.mark.parametrize("table", [OUTBOX, GOHARVEST])
def test_stats_of_nothing(connection: psycopg.Connection[Any], table: TableName) -> None:
    """An empty outbox has no ids and no age."""
    found = stats(connection, table)
    assert (found.records, found.first_id, found.oldest_seconds, found.topics) == (
        0,
        None,
        None,
        {},
    )


def test_stats_of_no_table(connection: psycopg.Connection[Any]) -> None:
    """A table that is not there is an error that says how to make it."""
    with pytest.raises(OutboxError, match="there is no table new: make it with"):
        stats(connection, NEW)
