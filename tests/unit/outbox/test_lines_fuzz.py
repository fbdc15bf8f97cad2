from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster import MessageError
from harvest_dagster.outbox import Message
from harvest_dagster.outbox.lines import LineReader

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("aGk="),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PAIRS = st.lists(st.tuples(st.text(), st.text() | st.none()).map(list), max_size=3)
FIELDS = st.fixed_dictionaries(
    {"topic": st.just("t") | ANYTHING},
    optional={
        "key": st.text() | ANYTHING,
        "key_base64": ANYTHING,
        "value": ANYTHING,
        "value_base64": ANYTHING,
        "headers": PAIRS | st.dictionaries(st.text(), st.text() | st.none()) | ANYTHING,
        "partition": st.integers(0, 5) | ANYTHING,
        "else": ANYTHING,
    },
)
KEPT = st.lists(
    st.tuples(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        st.none() | st.text(),
    ),
    max_size=3,
)
HEADERS = PAIRS | st.dictionaries(st.text(), st.binary()) | ANYTHING | st.binary()


def read(line: str) -> list[Message]:
    """Read a line, or have it refused in one line."""
    try:
        return list(LineReader([line]))
    except MessageError as error:
        assert str(error).isprintable()  # noqa: PT017 - it may be a good one
        return []


def check(message: Message) -> None:
    """See that it is what Kafka and PostgreSQL take."""
    assert isinstance(message.key, bytes | None)
    assert isinstance(message.value, bytes | None)
    for key, value in message.headers:
        assert "\0" not in key
        assert isinstance(key.encode(), bytes)
        assert isinstance(value, bytes | None)


@given(FIELDS)
def test_fuzz_of_fields(fields: dict[str, Any]) -> None:
    """Any object is a message, or refused with a MessageError of one line."""
    for message in read(json.dumps(fields)):
        check(message)


@given(st.text() | ANYTHING.map(json.dumps) | st.text('{}[]",:\\ue0dtopicky"').map("{}".__add__))
def test_fuzz_of_text(line: str) -> None:
    """Any line is a message, or refused with a MessageError of one line."""
    for message in read(line):
        check(message)


@given(HEADERS)
def test_fuzz_of_headers(headers: Any) -> None:
    """Any headers are pairs of text and bytes, or refused with a MessageError of one line."""
    try:
        check(Message("t", "k", "v", headers))
    except MessageError as error:
        assert str(error).isprintable()  # noqa: PT017 - they may be good ones


@given(KEPT)
def test_headers_are_kept(pairs: list[tuple[str, str | None]]) -> None:
    """Pairs stand in a message in their order, repeats and all."""
    kept = Message("t", "k", "v", pairs).headers
    assert [(key, value if value is None else value.decode()) for key, value in kept] == pairs
