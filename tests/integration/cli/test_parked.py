from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message
from harvest_dagster.ledger import lease as leases
from tests.support.parked import ids

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.databases import Stashed


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), [11, 12, 13]),
        (("--topic", "orders"), [11, 12]),
        (("--key", "é"), [12]),
        (("--topic", "images", "--key", "a"), []),
        (("--limit", "2"), [11, 12]),
        (("--of", "other"), []),
        (("--name", "other"), []),
    ],
)
def test_list(harvest: Harvest, words: tuple[str, ...], found: list[int]) -> None:
    """What is set aside is listed in the order of the ids, by topic and key."""
    assert ids(harvest, *words) == found


@pytest.mark.usefixtures("three")
def test_list_for_people(harvest: Harvest) -> None:
    """The list is a table for people."""
    lines = harvest("parked", "list").stdout.splitlines()
    assert lines[0].split() == ["id", "topic", "key", "size", "tries", "parked", "at", "reason"]
    assert lines[1].startswith("11  orders  a    6 B   1      ")
    assert lines[1].endswith("too large")
    assert lines[2].startswith("12  orders  é    0 B ")


def test_list_of_nothing(harvest: Harvest) -> None:
    """That nothing is set aside is said."""
    assert harvest("parked", "list").stdout == "nothing is set aside\n"


@pytest.mark.usefixtures("three")
def test_list_that_nothing_fits(harvest: Harvest) -> None:
    """Where nothing fits what was asked for, that is told, and not that nothing is set aside."""
    shown = harvest("parked", "list", "--topic", "ordres", "--key", "a")
    assert shown.stdout == ("nothing that is set aside in outbox matches --topic ordres --key a\n")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    "words", [("list",), ("show", "11"), ("requeue", "--all"), ("discard", "--all", "--yes")]
)
def test_a_name_that_is_none(
    harvest: Harvest, connection: psycopg.Connection[Any], words: tuple[str, ...]
) -> None:
    """A name that no harvest has is an error, with those that there are."""
    leases.acquire(connection, "outbox", 0, "x", 60)
    connection.commit()
    failed = harvest("parked", *words, "--of", "outbx")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "harvest: no harvest named outbx has led yet; there are: outbox\n"


@pytest.mark.usefixtures("three")
def test_show(harvest: Harvest) -> None:
    """A record is shown with its headers, sizes, value, reason, tries and times."""
    lines = set(harvest("parked", "show", "11").stdout.splitlines())
    assert {
        "record         11",
        "partition      3",
        "key            a",
        "header h       1",
        "header i       NULL",
        "value size     6 B",
        "value          eleven",
        "reason         too large",
        "tries          1",
        "holds its key  yes",
        "requeued at    -",
    } <= lines
    assert "value          \\x00\\xff\\n\n" in harvest("parked", "show", "13").stdout
    assert "value          NULL\n" in harvest("parked", "show", "12").stdout


@pytest.mark.usefixtures("three")
def test_show_as_json(harvest: Harvest) -> None:
    """As JSON a record is whole, so that it can be kept."""
    told = json.loads(harvest("parked", "show", "13", "--json").stdout)
    assert (told["key_base64"], told["value_base64"]) == ("Yg==", "AP8K")
    assert told["excerpt"] == "\\x00\\xff\\n"
    told = json.loads(harvest("parked", "show", "11", "--json").stdout)
    assert told["headers"] == [["h", "1"], ["i", None]]


@pytest.mark.usefixtures("three")
def test_requeue(harvest: Harvest, connection: psycopg.Connection[Any], stashed: Stashed) -> None:
    """What is requeued is back in the outbox as it was, with its id and time."""
    done = harvest("parked", "requeue", "11", "12")
    assert done.stdout == "requeued 2 records into outbox: 11, 12\n"
    assert stashed() == [
        Message("orders", "a", "eleven", [("h", "1"), ("i", None)], 3),
        Message("orders", "é", None),
    ]
    rows = connection.execute("SELECT id, create_time::text FROM outbox ORDER BY id").fetchall()
    assert [row[0] for row in rows] == [11, 12]
    assert rows[0][1].startswith("2026-01-02 03:04:05")
    assert ids(harvest) == [13]
    assert "requeued at    20" in harvest("parked", "show", "11").stdout


@pytest.mark.usefixtures("three")
def test_requeue_into_goharvest(
    harvest: Harvest, connection: psycopg.Connection[Any], stashed: Stashed
) -> None:
    """Into goharvest's columns of text bytes go back as text."""
    names = ("--outbox", "goharvest_outbox")
    assert harvest("parked", "requeue", "--topic", "orders", *names).returncode == 0
    table = "goharvest_outbox"
    assert stashed(table) == [
        Message("orders", "a", "eleven", [("h", "1"), ("i", None)]),
        Message("orders", "é", None),
    ]
    assert connection.execute(f"SELECT DISTINCT leader_id FROM {table}").fetchall() == [(None,)]


@pytest.mark.usefixtures("three")
def test_requeue_is_all_or_nothing(harvest: Harvest, stashed: Stashed) -> None:
    """When one record can't be put back, none is."""
    names = ("--outbox", "goharvest_outbox")
    failed = harvest("parked", "requeue", "--all", *names)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.startswith("harvest: PostgreSQL: invalid byte sequence")
    assert (stashed("goharvest_outbox"), ids(harvest, *names)) == ([], [11, 12, 13])
    assert json.loads(harvest("history", "--json", "--name", "goharvest_outbox").stdout) == []


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(("word", "kind"), [("requeue", "requeued"), ("discard", "discarded")])
def test_events(harvest: Harvest, word: str, kind: str) -> None:
    """Who did it, and to which record, is written down."""
    yes = ("--yes",) if word == "discard" else ()
    harvest("parked", word, "12", *yes)
    [event] = json.loads(harvest("history", "--json").stdout)
    assert (event["kind"], event["shard"], event["detail"]) == (
        kind,
        0,
        {"id": 12, "topic": "orders", "key": "é", "reason": "too large", "by": getpass.getuser()},
    )


@pytest.mark.usefixtures("three")
def test_discard_asks(harvest: Harvest) -> None:
    """Nothing is discarded before somebody has said yes."""
    refused = harvest("parked", "discard", "--all", stdin="n\n")
    assert (refused.returncode, ids(harvest)) == (1, [11, 12, 13])
    assert "Discard 3 records of outbox, never to be published?" in refused.stderr
    assert harvest("parked", "discard", "11", stdin="y\n").returncode == 0
    assert ids(harvest) == [12, 13]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("word", ["requeue", "discard"])
@pytest.mark.parametrize("words", [(), ("--all", "11"), ("--all", "--topic", "orders")])
def test_unclear_choice(harvest: Harvest, word: str, words: tuple[str, ...]) -> None:
    """A choice that is none, or unclear, is refused with what to write."""
    failed = harvest("parked", word, *words)
    assert failed.returncode == 2
    assert "say which: ids as `harvest parked list` tells them, or --topic" in failed.stderr
    assert ids(harvest) == [11, 12, 13]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("words", [("requeue",), ("discard", "--yes"), ("show",)])
def test_unknown_id(harvest: Harvest, words: tuple[str, ...]) -> None:
    """An id that is not set aside is told in one line, and nothing is done."""
    failed = harvest("parked", *words, "99")
    assert (failed.returncode, ids(harvest)) == (1, [11, 12, 13])
    assert failed.stderr == "harvest: not set aside in outbox: 99; see `harvest parked list`\n"


@pytest.mark.usefixtures("three")
def test_twice(harvest: Harvest) -> None:
    """What was requeued can be neither requeued nor discarded again."""
    harvest("parked", "requeue", "11")
    for words in (("requeue", "11"), ("discard", "--yes", "11")):
        assert "not set aside in outbox: 11" in harvest("parked", *words).stderr


@pytest.mark.usefixtures("three")
def test_of_none(harvest: Harvest) -> None:
    """Of a topic that has none, none is requeued or discarded, which is said."""
    assert harvest("parked", "requeue", "--topic", "none").stdout.startswith("requeued 0 records")
    assert harvest("parked", "discard", "--topic", "none").stdout.startswith("discarded 0 records")
