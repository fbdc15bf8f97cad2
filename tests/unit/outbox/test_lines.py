from __future__ import annotations

from collections.abc import Iterator

import pytest

from harvest_dagster import MessageError
from harvest_dagster.outbox import Message
from harvest_dagster.outbox.lines import LineReader


def read(*lines: str) -> list[Message]:
    """The messages of some lines."""
    return list(LineReader(lines))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"topic": "t", "key": "k", "value": "v"}', Message("t", "k", "v")),
        ('{"topic": "t", "key": null, "value": null}', Message("t", None, None)),
        ('{"topic": "t", "key": "k", "value": {"a": [1]}}', Message("t", "k", {"a": [1]})),
        ('{"topic": "t", "key": "k", "value": false}', Message("t", "k", "false")),
        ('{"topic": "t", "key_base64": "/w==", "value_base64": ""}', Message("t", b"\xff", b"")),
        ('{"topic": "t", "key_base64": null, "value_base64": null}', Message("t", None, None)),
        (
            '{"topic": "t", "key": "k", "value": 1, "headers": {"a": "1", "b": null}}',
            Message("t", "k", 1, {"a": "1", "b": None}),
        ),
        (
            '{"topic": "t", "key": "k", "value": 1, "headers": [["a", "1"], ["a", ""]]}',
            Message("t", "k", 1, [("a", "1"), ("a", "")]),
        ),
        (
            '{"topic": "t", "key": "k", "value": 1, "headers": null, "partition": 2}',
            Message("t", "k", 1, partition=2),
        ),
    ],
)
def test_line(line: str, message: Message) -> None:
    """A line reads as the message that it describes."""
    assert read(line) == [message]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"topic": "t"', "not JSON: Expecting ',' delimiter at column 14"),
        ("5", "5 is no object"),
        ('["t"]', "['t'] is no object"),
        pytest.param("[" * 100_000, "nested too deeply", id="nested"),
        pytest.param("9" * 5000, "a number has too many digits", id="digits"),
        ('{"value": NaN}', "NaN is no number that JSON knows"),
        ('{"topic": "t", "key": "k", "value": 1e999}', "value: inf is not JSON"),
        ('{"key": "k", "value": 1}', "topic: missing"),
        ('{"topic": "t", "value": 1}', "key: missing; write null if there is none"),
        ('{"topic": "t", "key": "k"}', "value: missing; write null if there is none"),
        ('{"topic": "t", "vaule": 1}', "no field 'vaule'; did you mean 'value'?"),
        ('{"xyzzy": 1}', "no field 'xyzzy'; there are topic, key, "),
        (
            '{"topic": "t", "key": "k", "key_base64": "aw==", "value": 1}',
            "key: given as key and as key_base64; give one",
        ),
        (
            '{"topic": "t", "key": "k", "value_base64": "a"}',
            "value_base64: 'a' is not base64",
        ),
        ('{"topic": "t", "key_base64": 5, "value": 1}', "key_base64: 5 is not base64"),
        ('{"topic": "t", "key_base64": "é", "value": 1}', r"key_base64: '\xe9' is not base64"),
        (
            '{"topic": "t", "key": "k", "value": 1, "headers": "a"}',
            "headers: 'a' is neither an object nor an array of pairs",
        ),
        ('{"topic": "t", "key": "k", "value": 1, "headers": ["ab"]}', "'ab' is no pair"),
        ('{"topic": "t", "key": "k", "value": 1, "headers": [["a"]]}', "['a'] is no pair"),
        (
            '{"topic": "t", "key": "k", "value": 1, "headers": [{"key": "a", "value": "b"}]}',
            "is no pair of key and value",
        ),
        ('{"topic": "t", "key": 5, "value": 1}', "key: 5 is a number"),
        ('{"topic": 5, "key": "k", "value": 1}', "topic: 5 is a number"),
    ],
)
def test_refused(line: str, said: str) -> None:
    """A line that describes no message is refused with what is wrong in it."""
    with pytest.raises(MessageError) as error:
        read(line)
    assert said in str(error.value)


def test_blank_lines() -> None:
    """Blank lines are passed over, and counted."""
    reader = LineReader(["\n", '{"topic": "t", "key": "k", "value": 1}\n', "  \r\n"])
    assert (len(list(reader)), reader.number) == (1, 3)


def test_number_is_of_the_line_just_read() -> None:
    """The number is that of the line whose message came last, and no line is read ahead."""
    reader = LineReader(_lines_until_asked_too_far())
    next(iter(reader))
    assert reader.number == 2


def _lines_until_asked_too_far() -> Iterator[str]:
    yield ""
    yield '{"topic": "t", "key": "k", "value": 1}'
    pytest.fail("a line was read ahead")
