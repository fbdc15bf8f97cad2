from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster import Message, MessageError, OutboxError
from harvest_dagster.outbox.schema import to_native
from harvest_dagster.postgres.names import TableName

if TYPE_CHECKING:
    from tests.support.databases import Stashed
    from tests.support.ways import Way

TABLE = TableName("goharvest_outbox")
# As bytea's own text, this would be read as the one letter A.
MANGLED_IF_READ_AS_BYTEA = Message("orders", r"\x41", r"\x41")
by_each_statement = pytest.mark.parametrize(
    ("many", "ids"),
    [(False, False), (True, False), (True, True)],
    ids=["insert", "copy", "returning"],
)
DATABASE_ERRORS = (psycopg.Error, sa.exc.DBAPIError)


@by_each_statement
async def test_turned_to_native(
    way: Way, connection: psycopg.Connection[Any], many: bool, ids: bool, stashed: Stashed
) -> None:
    """A table that turns native under a live connection keeps true values, or refuses once."""
    message = MANGLED_IF_READ_AS_BYTEA
    messages = [message] if many else message
    await way.put(messages, outbox=TABLE.sql, ids=ids)
    await way.commit()
    to_native(connection, TABLE)
    connection.commit()
    with pytest.raises(DATABASE_ERRORS):
        await way.put(messages, outbox=TABLE.sql, ids=ids)
    await way.rollback()
    await way.put(messages, outbox=TABLE.sql, ids=ids)
    await way.commit()
    assert stashed(TABLE.sql) == [message, message]


@pytest.mark.parametrize("column", ["kafka_key", "kafka_value", "kafka_header_values"])
@by_each_statement
async def test_one_column_turned(
    way: Way,
    connection: psycopg.Connection[Any],
    many: bool,
    ids: bool,
    column: str,
    stashed: Stashed,
) -> None:
    """A single column that turns to bytes under a live connection never keeps other bytes."""
    message = Message("orders", r"\x41", r"\x41", {"h": r"\x41"})
    messages = [message] if many else message
    await way.put(messages, outbox=TABLE.sql)
    await way.commit()
    connection.execute(_turn(column))
    connection.commit()
    with suppress(*DATABASE_ERRORS):
        await way.put(messages, outbox=TABLE.sql, ids=ids)
        await way.commit()
    assert set(stashed(TABLE.sql)) == {message}


async def test_bytes_after_turning_native(way: Way, connection: psycopg.Connection[Any]) -> None:
    """Bytes that the table of texts refused are taken once it is a table of bytes."""
    message = Message("orders", "7", b"\xff")
    with pytest.raises(MessageError, match="not UTF-8"):
        await way.put(message, outbox=TABLE.sql)
    await way.rollback()
    to_native(connection, TABLE)
    connection.commit()
    assert await way.put(message, outbox=TABLE.sql) == 1


async def test_partition_after_adding_it(way: Way, connection: psycopg.Connection[Any]) -> None:
    """A partition that the table could not keep is kept once the column is there."""
    message = Message("orders", "7", "", partition=3)
    with pytest.raises(MessageError, match="the table has no column kafka_partition"):
        await way.put(message, outbox=TABLE.sql)
    await way.rollback()
    connection.execute("ALTER TABLE goharvest_outbox ADD COLUMN kafka_partition integer")
    connection.commit()
    assert await way.put([message], outbox=TABLE.sql) == 1


async def test_table_that_goes_away(way: Way, connection: psycopg.Connection[Any]) -> None:
    """A table that is dropped under a live connection is an error, and then one that says so."""
    await way.put(MANGLED_IF_READ_AS_BYTEA)
    await way.commit()
    connection.execute("DROP TABLE outbox")
    connection.commit()
    with pytest.raises(DATABASE_ERRORS):
        await way.put(MANGLED_IF_READ_AS_BYTEA)
    await way.rollback()
    with pytest.raises(OutboxError, match="there is no table outbox"):
        await way.put(MANGLED_IF_READ_AS_BYTEA)


def _turn(column: str) -> LiteralString:
    if column == "kafka_header_values":
        return (
            "ALTER TABLE goharvest_outbox ALTER kafka_header_values TYPE bytea[]"
            " USING harvest.as_bytes(kafka_header_values)"
        )
    return (
        f"ALTER TABLE goharvest_outbox ALTER {column} TYPE bytea USING convert_to({column}, 'UTF8')"
    )
