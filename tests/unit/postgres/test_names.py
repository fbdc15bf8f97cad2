from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster import ConfigError
from harvest_dagster.postgres.names import TableName, quoted

PARTS = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="%"),
    min_size=1,
    max_size=15,
)


@pytest.mark.parametrize(
    ("text", "name", "sql"),
    [
        ("outbox", TableName("outbox"), '"outbox"'),
        ("Shop.OutBox", TableName("outbox", "shop"), '"shop"."outbox"'),
        ('"Shop".outbox', TableName("outbox", "Shop"), '"Shop"."outbox"'),
        ('"a.b"', TableName("a.b"), '"a.b"'),
        ('"a""b"', TableName('a"b'), '"a""b"'),
        ('"; DROP TABLE x; --"', TableName("; DROP TABLE x; --"), '"; DROP TABLE x; --"'),
        ('"{table}"', TableName("{table}"), '"{table}"'),
        ("_a$1", TableName("_a$1"), '"_a$1"'),
        ("a" * 63, TableName("a" * 63), f'"{"a" * 63}"'),
    ],
)
def test_reads_as_sql_would(text: str, name: TableName, sql: str) -> None:
    """A name is read as SQL would read it, and quoted for a statement."""
    read = TableName.parse(text)
    assert (read, read.sql) == (name, sql)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "out box",
        "outbox ",
        "outbox\n",
        "1outbox",
        "a.b.c",
        ".outbox",
        "shop.",
        "outbox; DROP TABLE x",
        "outbox--",
        "outbox'",
        'out"box',
        '"outbox',
        '""',
        '"a"b"',
        "grün",
        '"a\0b"',
        '"a\nb"',
        '"50%s"',
        '"\ud800"',
    ],
)
def test_refused(text: str) -> None:
    """What is no name, or could not be put into a statement, is refused in one line."""
    with pytest.raises(ConfigError, match="is no table name: write table or") as error:
        TableName.parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["a" * 64, f'"{"é" * 32}"', f"{'a' * 64}.outbox"])
def test_too_long(text: str) -> None:
    """A name of more than 63 bytes, which PostgreSQL would cut, is refused."""
    with pytest.raises(ConfigError, match="longer than PostgreSQL's 63 bytes"):
        TableName.parse(text)


@given(PARTS, st.none() | PARTS)
def test_writes_what_it_reads(table: str, schema: str | None) -> None:
    """A name shown in a message can be given to a command as it stands."""
    name = TableName(table, schema)
    assert TableName.parse(str(name)) == name


@given(PARTS, st.none() | PARTS)
def test_quoted_is_read_again(table: str, schema: str | None) -> None:
    """A quoted name reads as the same name, so that nothing of it escapes its quotes."""
    name = TableName(table, schema)
    assert TableName.parse(name.sql) == name


def test_quotes_are_doubled() -> None:
    """A quote within an identifier is doubled."""
    assert quoted('a"; DROP') == '"a""; DROP"'
