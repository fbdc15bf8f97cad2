"""A key of a scope is written once for each outbox, and knows what was written before scopes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import psycopg
import pytest

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.keys import scoped
from harvest_dagster.ledger.once import Request, Written, write_once
from harvest_dagster.postgres.names import TableName
from tests.support.waiting import until

Connection: TypeAlias = psycopg.Connection[Any]
OUTBOX, OTHER = TableName("outbox"), TableName("goharvest_outbox")
NORTH, SOUTH = scoped("k", "north"), scoped("k", "south")
KEYS = "SELECT key FROM harvest.written ORDER BY key"
OLD = """INSERT INTO harvest.written (key, write, outbox, messages, total, passing)
         VALUES (%s, %s, %s, 3, 3, false)"""
"""As versions before 0.2 recorded a write."""
ROLE = """CREATE ROLE spark_of_a_test;
          GRANT USAGE ON SCHEMA harvest TO spark_of_a_test;
          GRANT ALL ON harvest.written TO spark_of_a_test;
          SET LOCAL ROLE spark_of_a_test"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('harvest.written k', 0))"
"""As they kept others from writing the same at the same time."""


@pytest.fixture
def free(connection: Connection) -> Connection:
    """A connection whose statements are transactions of their own."""
    connection.autocommit = True
    return connection


def write(
    connection: Connection,
    key: str | Sequence[str],
    outbox: TableName = OUTBOX,
    id_: UUID | None = None,
    **more: Any,
) -> Written:
    """Write a message under a key."""
    request = Request(id_ or uuid4(), key, outbox, **more)
    return write_once(connection, request, lambda begun: replace(begun, messages=1))


def test_each_scope_and_outbox_writes_once(free: Connection) -> None:
    """Each scope writes a key once for each outbox, and skips it from then on."""
    asked = [(key, outbox) for key in (NORTH, SOUTH) for outbox in (OUTBOX, OTHER)]
    for repeated in (False, True):
        assert [write(free, *each).repeated for each in asked] == [repeated] * 4
    assert [key for (key,) in free.execute(KEYS)] == [
        f"outbox=public.{outbox} {key}" for outbox in (OTHER, OUTBOX) for key in (NORTH, SOUTH)
    ]


def test_an_outbox_by_another_name(free: Connection) -> None:
    """An outbox is the same with its schema or without, and whatever the search path finds."""
    assert not write(free, NORTH).repeated
    assert write(free, NORTH, TableName("outbox", "public")).repeated
    free.execute("CREATE SCHEMA own CREATE TABLE outbox ()")
    free.execute("SET search_path = own")
    assert write(free, NORTH, TableName("outbox", "public")).repeated
    assert not write(free, NORTH).repeated


def test_a_key_of_before_counts(free: Connection) -> None:
    """What a version without scopes has written is not written again, under whatever scope."""
    free.execute(OLD, ("k", uuid4(), "outbox"))
    for key in (NORTH, SOUTH, "k"):
        assert (write(free, key).repeated, write(free, key).known_by) == (True, "k")
    with pytest.raises(OutboxError, match="scope=north key=k was written already, 3 messages"):
        write(free, NORTH, on_repeat="error")
    again = write(free, NORTH, on_repeat="again")
    assert (again.batch, again.repeated) == (1, False)
    assert write(free, NORTH).known_by == f"outbox=public.outbox {NORTH}"
    assert write(free, SOUTH).known_by == "k"


def test_a_key_of_before_with_another_outbox(free: Connection) -> None:
    """A key that was written with another outbox does not count, unless that is gone."""
    free.execute(OLD, ("k", uuid4(), "goharvest_outbox"))
    assert not write(free, NORTH).repeated
    with pytest.raises(OutboxError, match="a key belongs to one outbox"):
        write(free, "k")
    free.execute("ALTER TABLE goharvest_outbox RENAME TO renamed")
    assert write(free, SOUTH, TableName("renamed")).repeated


def test_a_key_of_before_in_a_schema_of_others(connection: Connection) -> None:
    """Nor does one with an outbox of the same name in a schema that the role may not use."""
    connection.execute('CREATE SCHEMA "Own" CREATE TABLE outbox ()')
    connection.execute(OLD, ("k", uuid4(), '"Own".outbox'))
    connection.execute(ROLE)
    assert [write(connection, NORTH).repeated for _ in range(2)] == [False, True]
    connection.rollback()


def test_days_of_before_in_a_range(free: Connection) -> None:
    """In a range each day counts that was written before; some but not all of them are refused."""
    days = [scoped(day, "north") for day in ("a", "b", "c")]
    free.execute(OLD, ("a", uuid4(), "outbox"))
    write(free, days[1])
    assert write(free, days[:2]).repeated
    with pytest.raises(OutboxError, match=r"of the 3 keys .* some were written already: a, b;"):
        write(free, days)
    assert not write(free, days, on_repeat="again").repeated
    assert write(free, days).repeated


def test_the_same_write_of_before(free: Connection) -> None:
    """A launch whose write an older version has committed does not write again, be it asked to."""
    same = uuid4()
    free.execute(OLD, ("k", same, "outbox"))
    assert write(free, NORTH, id_=same, on_repeat="again").repeated


def test_a_stream_goes_on(free: Connection) -> None:
    """A stream that comes into a scope goes on from the batch that it committed before."""

    def batch(number: int, key: str) -> bool:
        return write(free, key, batch=number, stream="one").repeated

    assert [batch(number, "k") for number in (0, 1)] == [False, False]
    assert [batch(number, NORTH) for number in (1, 2, 2)] == [True, False, True]
    with pytest.raises(OutboxError, match="has committed batch 2, and now comes batch 1"):
        batch(1, NORTH)


def test_a_key_that_only_looks_like_one_of_a_scope(free: Connection) -> None:
    """A bare key may have any text; it is not taken apart."""
    write(free, "k")
    for key in ("scope=north", "a scope=north key=k", "scope= key=k", "north: k"):
        assert not write(free, key).repeated


def test_beside_an_older_version(database: str, free: Connection) -> None:
    """A writer of an older version and one of a scope wait for each other, and one writes."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(database) as older, ThreadPoolExecutor(1) as pool:
        older.execute(LOCK)
        older.execute(OLD, ("k", uuid4(), "outbox"))
        scoped_write = pool.submit(write_alone, database, NORTH)
        until(lambda: free.execute(waiting).fetchone() == (1,), what="the second one waits")
        older.commit()
        assert scoped_write.result().repeated


def write_alone(database: str, key: str) -> Written:
    """Write on a connection of its own."""
    with psycopg.connect(database, autocommit=True) as connection:
        return write(connection, key)
