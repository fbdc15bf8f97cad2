from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row

from harvest_dagster import Message, Outbox, astash, stash
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName

if TYPE_CHECKING:
    from tests.support.databases import Stashed

MESSAGES = [Message("orders", str(number), {"n": number}, {"h": "v"}) for number in range(3)]
NAMES = ["shop.outbox", '"Mixed Case"', '"shop".";--"', '"quo""te.d"', '"{braces}"', '"a:b"']


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("table", ["outbox", "goharvest_outbox"])
def test_pipeline(database: str, table: str, ids: bool, stashed: Stashed) -> None:
    """In psycopg's pipeline mode one message and many are stashed as ever."""
    with psycopg.connect(database) as connection, connection.pipeline():
        one = stash(connection, MESSAGES[0], outbox=table, ids=ids)
        many = stash(connection, MESSAGES[1:], outbox=table, ids=ids)
    assert (one, many) == (([1], [2, 3]) if ids else (1, 2))
    assert stashed(table) == MESSAGES


async def test_async_pipeline(database: str, stashed: Stashed) -> None:
    """In the asynchronous pipeline mode likewise."""
    async with (
        await psycopg.AsyncConnection.connect(database) as connection,
        connection.pipeline(),
    ):
        await astash(connection, MESSAGES[0])
        await astash(connection, MESSAGES[1:])
    assert stashed() == MESSAGES


@pytest.mark.parametrize(
    "options",
    [
        {"row_factory": dict_row},
        {"cursor_factory": psycopg.ClientCursor},
        {"cursor_factory": psycopg.RawCursor},
        {"prepare_threshold": None},
        {"prepare_threshold": 0},
    ],
    ids=["dict_row", "ClientCursor", "RawCursor", "never prepared", "prepared at once"],
)
@pytest.mark.parametrize("ids", [False, True])
def test_connections_of_any_make(
    database: str,
    options: dict[str, Any],
    ids: bool,
    stashed: Stashed,
) -> None:
    """However the caller wants rows and statements, stash goes its own way."""
    with psycopg.connect(database, **options) as connection:
        stash(connection, MESSAGES[0], ids=ids)
        stash(connection.cursor(), MESSAGES[1:], ids=ids)
    assert stashed() == MESSAGES


def test_the_callers_cursor_is_left_alone(connection: psycopg.Connection[Any]) -> None:
    """Rows that the caller's cursor has yet to fetch are still there after a stash on it."""
    cursor = connection.execute("SELECT 5")
    stash(cursor, MESSAGES)
    assert cursor.fetchone() == (5,)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("name", NAMES)
def test_table_names(
    database: str, connection: psycopg.Connection[Any], kind: Kind, name: str, stashed: Stashed
) -> None:
    """A table in another schema, or of a name that needs quotes, is stashed into like any."""
    connection.execute("CREATE SCHEMA shop")
    table = TableName.parse(name)
    create(connection, table, kind)
    stash(connection, MESSAGES[0], outbox=Outbox(table))
    stash(connection, MESSAGES[1:2], outbox=name)
    connection.commit()
    engine = sa.create_engine(sa.make_url(database).set(drivername="postgresql+psycopg2"))
    with engine.begin() as other:
        stash(other, MESSAGES[2:], outbox=name)
    engine.dispose()
    assert stashed(table.sql) == MESSAGES


def test_search_path(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """A name without a schema is found by the connection's search path."""
    connection.execute("CREATE SCHEMA shop")
    connection.execute("SET search_path = shop, public")
    create(connection, TableName("other"), Kind.NATIVE)
    stash(connection, MESSAGES, outbox="other")
    connection.commit()
    assert stashed("shop.other") == MESSAGES


@pytest.mark.parametrize("messages", [MESSAGES[0], MESSAGES], ids=["one", "many"])
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_first_on_an_sqlalchemy_connection(
    database: str, driver: str, messages: Any, stashed: Stashed
) -> None:
    """A stash that is the first thing on a connection is in the transaction of its commit."""
    engine = sa.create_engine(sa.make_url(database).set(drivername=f"postgresql+{driver}"))
    with engine.connect() as connection:
        stash(connection, messages)
        connection.commit()
    engine.dispose()
    assert len(stashed()) == (1 if messages is MESSAGES[0] else 3)


def test_with_the_callers_rows(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """Messages come and go with the caller's own rows of the same transaction."""
    connection.execute("CREATE TABLE orders (n int PRIMARY KEY)")
    connection.commit()
    for _ in range(2):
        stash(connection, MESSAGES[0])
        try:
            connection.execute("INSERT INTO orders VALUES (1)")
            connection.commit()
        except psycopg.errors.UniqueViolation:
            connection.rollback()
    assert stashed() == MESSAGES[:1]


@pytest.mark.parametrize("messages", [MESSAGES[0], MESSAGES[:1]], ids=["insert", "copy"])
@pytest.mark.parametrize("table", ["outbox", "goharvest_outbox"])
def test_create_time(connection: psycopg.Connection[Any], messages: Any, table: str) -> None:
    """A message's time is that of its transaction, by INSERT and by COPY, in either table."""
    stash(connection, messages, outbox=table)
    row = connection.execute(f"SELECT create_time = now() FROM {table}").fetchone()
    assert row == (True,)
