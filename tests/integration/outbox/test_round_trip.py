from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harvest_dagster import Message, stash

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,30}", fullmatch=True).filter(
    lambda topic: topic not in {".", ".."}
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
# What array literals and COPY have a meaning for comes more often than chance has it.
AWKWARD = TEXT | st.text('"\\{},\n NUL', max_size=8)
BYTES = st.binary(max_size=30) | AWKWARD.map(str.encode)
PARTITIONS = st.none() | st.integers(0, 2**31 - 1)

ANY = st.builds(
    Message,
    TOPICS,
    st.none() | BYTES,
    st.none() | BYTES,
    st.lists(st.tuples(AWKWARD, st.none() | BYTES), max_size=4),
    PARTITIONS,
)
OF_TEXT = st.builds(
    Message,
    TOPICS,
    AWKWARD,
    st.none() | AWKWARD,
    st.lists(st.tuples(AWKWARD, st.none() | AWKWARD), max_size=4),
    st.none(),
)
any_database = settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["insert", "returning", "copy"])
def how(request: pytest.FixtureRequest) -> Any:
    """Each of the ways that lead into the table."""

    def put(connection: psycopg.Connection[Any], messages: list[Message], table: str) -> None:
        if request.param == "insert":
            for message in messages:
                stash(connection, message, outbox=table)
        else:
            stash(connection, messages, outbox=table, ids=request.param == "returning")

    return put


@any_database
@given(messages=st.lists(ANY, max_size=4))
def test_native(connection: psycopg.Connection[Any], how: Any, messages: list[Message]) -> None:
    """Any legal message is kept byte for byte in a table of ours."""
    connection.rollback()
    how(connection, messages, "outbox")
    assert list(_kept(connection, "outbox", "kafka_partition")) == messages


@any_database
@given(messages=st.lists(OF_TEXT, max_size=4))
def test_goharvest(connection: psycopg.Connection[Any], how: Any, messages: list[Message]) -> None:
    """Any legal message of texts is kept as it is in goharvest's table."""
    connection.rollback()
    how(connection, messages, "goharvest_outbox")
    assert list(_kept(connection, "goharvest_outbox", "NULL")) == messages


def test_size_of_a_header_array(connection: psycopg.Connection[Any], how: Any) -> None:
    """A thousand headers are kept as well as one."""
    message = Message("orders", "7", "", [(str(n % 7), bytes([n % 256])) for n in range(1000)])
    how(connection, [message], "outbox")
    assert list(_kept(connection, "outbox", "kafka_partition")) == [message]


def _kept(connection: psycopg.Connection[Any], table: str, partition: str) -> Iterator[Message]:
    rows = connection.execute(
        "SELECT kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values,"
        f" {partition} FROM {table} ORDER BY id"
    )
    for topic, key, value, keys, values, number in rows:
        yield Message(topic, key, value, zip(keys, values, strict=True), number)
