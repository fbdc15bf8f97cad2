from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName

if TYPE_CHECKING:
    from tests.support.databases import Stashed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'orders', '7', 'grüße'", Message("orders", "7", "grüße")),
        ("'orders', '7', 'v'::varchar", Message("orders", "7", "v")),
        ("'orders', '7', '{\"a\": 1}'::jsonb", Message("orders", "7", '{"a": 1}')),
        ("'orders', '7', 'null'::jsonb", Message("orders", "7", "null")),
        ("'orders', '7', '\\xff00'::bytea", Message("orders", "7", b"\xff\0")),
        ("'orders', NULL, NULL", Message("orders", None, None)),
        ("'orders', '7', NULL::jsonb", Message("orders", "7", None)),
        ("'orders', '', ''", Message("orders", "", "")),
        ("'orders', '7', '', partition => 3", Message("orders", "7", "", partition=3)),
        (
            """'orders', '7', '', '{"b": "1", "a": null}'""",
            Message("orders", "7", "", {"a": None, "b": "1"}),
        ),
        (
            """'orders', '7', '', '[["a", "1"], ["a", null], ["", ""], ["a", 5]]'""",
            Message("orders", "7", "", [("a", "1"), ("a", None), ("", ""), ("a", "5")]),
        ),
        ("'orders', '7', '', '[]'", Message("orders", "7", "")),
    ],
)
def test_stash(
    connection: psycopg.Connection[Any], arguments: str, message: Message, stashed: Stashed
) -> None:
    """harvest.stash stashes a text, jsonb or bytea, with headers and partition as they are."""
    connection.execute(f"SELECT harvest.stash({arguments})")
    connection.commit()
    assert stashed() == [message]


def test_into_goharvest(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """harvest.stash stashes into goharvest's table by its name."""
    connection.execute(
        """SELECT harvest.stash('orders', '7', '\\xc3a9'::bytea, '{"h": "ü", "n": null}',
                                outbox => 'goharvest_outbox')"""
    )
    connection.commit()
    assert stashed("goharvest_outbox") == [Message("orders", "7", "é", {"h": "ü", "n": None})]


@pytest.mark.parametrize("kind", Kind)
def test_into_another_table(
    connection: psycopg.Connection[Any], kind: Kind, stashed: Stashed
) -> None:
    """The table may be in another schema, and of a name that needs quotes."""
    connection.execute('CREATE SCHEMA "Shop"')
    table = TableName("; --", "Shop")
    create(connection, table, kind)
    connection.execute("SELECT harvest.stash('orders', '7', 'v', outbox => %s)", (table.sql,))
    connection.commit()
    assert stashed(table.sql) == [Message("orders", "7", "v")]


def test_tells_the_id(connection: psycopg.Connection[Any]) -> None:
    """harvest.stash tells the id of the message."""
    told = connection.execute("SELECT harvest.stash('t', 'k', 'v')").fetchone()
    assert told == connection.execute("SELECT id FROM outbox").fetchone()


def test_rollback(connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """What the caller rolls back leaves no message."""
    connection.execute("SELECT harvest.stash('t', 'k', 'v')")
    connection.rollback()
    assert stashed() == []


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "a\n", "é", "a" * 250, None])
def test_illegal_topic(connection: psycopg.Connection[Any], topic: str | None) -> None:
    """An illegal topic raises with a hint of what Kafka takes."""
    with pytest.raises(psycopg.errors.CheckViolation, match=r"(?s)topic: .* is not legal") as error:
        connection.execute("SELECT harvest.stash(%s, 'k', 'v')", (topic,))
    assert error.value.diag.message_hint == (
        "Kafka takes 1 to 249 letters, digits, '.', '_' and '-'."
    )


@pytest.mark.parametrize(
    "headers", ['"a"', "5", "null", None, '["a"]', '[["a"]]', '[[5, "a"]]', '[{"a": "b"}]']
)
def test_bad_headers(connection: psycopg.Connection[Any], headers: str | None) -> None:
    """Headers that are neither an object nor pairs raise with a hint of how to write them."""
    with pytest.raises(psycopg.errors.CheckViolation, match=r"headers: .* is neither") as error:
        connection.execute("SELECT harvest.stash('t', 'k', 'v', %s::jsonb)", (headers,))
    assert "Write {" in (error.value.diag.message_hint or "")


@pytest.mark.parametrize("table", ["nowhere", "nowhere.outbox", None])
def test_missing_table(connection: psycopg.Connection[Any], table: str | None) -> None:
    """A table that is not there raises with a hint of how to make it."""
    with pytest.raises(psycopg.errors.UndefinedTable, match="there is no table") as error:
        connection.execute("SELECT harvest.stash('t', 'k', 'v', outbox => %s)", (table,))
    assert error.value.diag.message_hint == "Make it with `harvest outbox create`."


def test_bytes_into_goharvest(connection: psycopg.Connection[Any]) -> None:
    """Bytes that are no UTF-8 are refused for goharvest's table."""
    with pytest.raises(psycopg.errors.CharacterNotInRepertoire):
        connection.execute(
            "SELECT harvest.stash('t', 'k', '\\xff'::bytea, outbox => 'goharvest_outbox')"
        )
