from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harvest_dagster import Message

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.databases import Stashed

LINES = """\
{"topic": "orders", "key": "é", "value": {"total": 12.5}, "headers": {"a": "1"}}

{"topic": "orders", "key_base64": "/w==", "value_base64": "AP8=", "partition": 3}
{"topic": "orders", "key": null, "value": null, "headers": [["a", "1"], ["a", null]]}
"""
MESSAGES = [
    Message("orders", "é", {"total": 12.5}, {"a": "1"}),
    Message("orders", b"\xff", b"\x00\xff", partition=3),
    Message("orders", None, None, [("a", "1"), ("a", None)]),
]


def test_from_standard_input(harvest: Harvest, stashed: Stashed) -> None:
    """JSON lines from standard input are stashed, counted, and blank lines passed over."""
    run = harvest("stash", stdin=LINES)
    assert (run.stdout, run.stderr, run.returncode) == ("stashed 3 messages into outbox\n", "", 0)
    assert stashed() == MESSAGES


def test_from_file(harvest: Harvest, stashed: Stashed) -> None:
    """JSON lines from a file are stashed likewise, whatever the locale's encoding."""
    Path("lines.jsonl").write_text(LINES, encoding="utf-8")
    assert harvest("stash", "lines.jsonl", LC_ALL="C", PYTHONUTF8="0").returncode == 0
    assert stashed() == MESSAGES


def test_into_goharvest(harvest: Harvest, stashed: Stashed) -> None:
    """The table that is named takes the messages."""
    line = '{"topic": "t", "key": "k", "value": "v", "headers": {"h": "ü"}}'
    harvest("stash", "--outbox", "goharvest_outbox", stdin=line)
    assert stashed("goharvest_outbox") == [Message("t", "k", "v", {"h": "ü"})]


def test_nothing(harvest: Harvest) -> None:
    """Of no lines no messages are stashed."""
    assert harvest("stash").stdout == "stashed 0 messages into outbox\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"topic": "t", "key": "k"', "not JSON: Expecting ',' delimiter at column 26"),
        ('{"topic": "t", "key": "k", "vaule": 1}', "no field 'vaule'; did you mean 'value'?"),
        ('{"topic": "t", "key": "k"}', "value: missing; write null if there is none"),
        ('["t", "k", "v"]', "is no object"),
        ('{"topic": "a b", "key": "k", "value": 1}', "topic: 'a b' is not legal"),
        ('{"topic": "t", "key": "k", "value": "' + "x" * 1000 + '"}', "the limit is 1,000"),
        ("9" * 5000, "a number has too many digits"),
    ],
    ids=["cut", "unknown field", "no value", "no object", "topic", "too large", "digits"],
)
def test_bad_line(harvest: Harvest, stashed: Stashed, line: str, said: str) -> None:
    """A bad line is told by its number and what is wrong, and no line is stashed."""
    stdin = f"{LINES}{line}\n{LINES}"
    failed = harvest("stash", "--max-message-bytes", "1000", stdin=stdin)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("harvest: line 5: ")
    assert failed.stderr.endswith("; nothing was stashed\n")
    assert (said in failed.stderr, failed.stderr.count("\n")) == (True, 1)
    assert stashed() == []


def test_file_that_is_not_utf8(harvest: Harvest, stashed: Stashed) -> None:
    """A file with bytes that are no UTF-8 is told as that, and no line is stashed."""
    Path("lines.jsonl").write_bytes(LINES.encode() + b'{"topic": "\xff"}\n')
    failed = harvest("stash", "lines.jsonl")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert "not UTF-8" in failed.stderr
    assert "nothing was stashed" in failed.stderr
    assert stashed() == []


def test_many_lines(harvest: Harvest, stashed: Stashed) -> None:
    """More lines than any buffer holds are stashed in their order."""
    lines = [json.dumps({"topic": "t", "key": str(n), "value": n}) for n in range(20_000)]
    assert harvest("stash", stdin="\n".join(lines)).stdout.startswith("stashed 20,000 messages")
    assert [message.value for message in stashed()] == [b"%d" % n for n in range(20_000)]


def test_size_of_the_settings(harvest: Harvest) -> None:
    """The size that the topics take may come from the environment."""
    line = '{"topic": "t", "key": "k", "value": "' + "x" * 1000 + '"}'
    failed = harvest("stash", stdin=line, HARVEST_MAX_MESSAGE_BYTES="1000")
    assert "the limit is 1,000" in failed.stderr
