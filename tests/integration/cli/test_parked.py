from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from harvest_dagster import Message, stash
from harvest_dagster.embedded import Servers
from harvest_dagster.ledger import lease as leases
from tests.support.place import set_limit
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.databases import Stashed
    from tests.support.reaping import Reap, Reaping
    from tests.support.topics import MakeTopic, Published

PARKED = """
INSERT INTO harvest.parked (name, shard, id, create_time, kafka_topic, kafka_key, kafka_value,
                            kafka_header_keys, kafka_header_values, kafka_partition, reason,
                            holds_key)
VALUES (%(table)s, 0, 11, '2026-01-02 03:04:05+00', 'orders', 'a', 'eleven', '{h,i}',
        ARRAY['1', NULL]::bytea[], 3, 'too large', true),
       (%(table)s, 0, 12, NULL, 'orders', convert_to('é', 'UTF8'), NULL, '{}', '{}', NULL,
        'too large', true),
       (%(table)s, 0, 13, now(), 'images', 'b', '\\x00ff0a', '{}', '{}', NULL, 'no partition 9',
        false)
"""


@pytest.fixture
def three(connection: psycopg.Connection[Any]) -> None:
    """Three records that are set aside, of the outbox and of goharvest's."""
    for table in ("outbox", "goharvest_outbox"):
        connection.execute(PARKED, {"table": table})
    connection.commit()


def listed(harvest: Harvest, *words: str) -> list[dict[str, Any]]:
    """What is set aside."""
    found: list[dict[str, Any]] = json.loads(harvest("parked", "list", "--json", *words).stdout)
    return found


def ids(harvest: Harvest, *words: str) -> list[int]:
    """The ids of what is set aside."""
    return [record["id"] for record in listed(harvest, *words)]


class Trouble(NamedTuple):
    """A harvest that has set a record aside, and how its commands name it."""

    names: tuple[str, ...]
    topic: str
    large: str
    reaping: Reaping


@pytest.fixture(params=["exactly_once", "at_least_once"])
def stashed_large(
    request: pytest.FixtureRequest,
    connection: psycopg.Connection[Any],
    outbox: str,
    made_topic: MakeTopic,
) -> tuple[str, str, str, str]:
    """Stash messages for a topic that will not take one of them; tell delivery, outbox, and it.

    Exactly once from an outbox of bytes; at least once from goharvest's table.
    """
    exactly = request.param == "exactly_once"
    table, most = (outbox, 100_000) if exactly else ("goharvest_outbox", 5_000)
    topic, large = made_topic(max_message_bytes=str(most)), "x" * (most + 1000)
    values = [("a", "0"), ("b", "0"), ("a", large), ("b", "1"), ("a", "2"), ("c", "0")]
    stash(connection, [Message(topic, key, value) for key, value in values], outbox=table)
    connection.commit()
    return request.param, table, topic, large


@pytest.fixture
def trouble(
    stashed_large: tuple[str, str, str, str],
    servers: Servers,
    data_source: str,
    outbox: str,
    reap: Reap,
    harvest: Harvest,
) -> Trouble:
    """A reap that has met a message that its topic does not take."""
    delivery, table, topic, large = stashed_large
    Path("reaper.yaml").write_text(
        f"harvest:\n  harvestName: {outbox}\n  outboxTable: {table}\n  delivery: {delivery}\n"
        f"  dataSource: {data_source}\n"
        f"  baseKafkaConfig:\n    bootstrap.servers: {servers.kafka}\n"
    )
    reaping, names = reap("-f", "reaper.yaml"), ("--name", outbox, "--outbox", table)
    until(lambda: listed(harvest, *names))
    return Trouble(names, topic, large, reaping)


def of_key(found: list[tuple[bytes, bytes]], key: bytes) -> list[str]:
    """The values of one key, in order."""
    return [value.decode() for its, value in found if its == key]


def test_what_kafka_refuses(harvest: Harvest, trouble: Trouble, published: Published) -> None:
    """A refused record is set aside with its reason; its key's later ones wait, and no other."""
    found = published(trouble.topic, 4)
    assert [of_key(found, key) for key in (b"a", b"b", b"c")] == [["0"], ["0", "1"], ["0"]]
    [record] = listed(harvest, *trouble.names)
    assert (record["key"], record["tries"], record["holds_key"]) == ("a", 1, True)
    assert "large" in record["reason"]
    told = json.loads(harvest("status", "--json", *trouble.names).stdout)
    assert (told["backlog"]["records"], told["parked"]["held_keys"]) == (1, 1)


def test_requeue_what_kafka_refused(
    harvest: Harvest, trouble: Trouble, admin: AdminClient, published: Published
) -> None:
    """When the topic takes it and it is requeued, it goes out, and then what waited for it."""
    set_limit(admin, trouble.topic, 1_000_000)
    done = harvest("parked", "requeue", "--topic", trouble.topic, *trouble.names)
    assert done.stdout.startswith(f"requeued 1 record into {trouble.names[-1]}: ")
    assert of_key(published(trouble.topic, 6), b"a") == ["0", trouble.large, "2"]
    assert trouble.reaping.stopped() == 0
    assert listed(harvest, *trouble.names) == []


def test_requeue_too_early(harvest: Harvest, trouble: Trouble) -> None:
    """What is requeued before anything was mended is set aside again, and its tries are counted."""
    harvest("parked", "requeue", "--all", *trouble.names)
    until(lambda: [record["tries"] for record in listed(harvest, *trouble.names)] == [2])
    assert trouble.reaping.stopped() == 0


def test_discard_what_kafka_refused(
    harvest: Harvest, trouble: Trouble, published: Published
) -> None:
    """When a refused record is discarded, its key goes on without it."""
    done = harvest("parked", "discard", "--yes", "--key", "a", *trouble.names)
    assert done.stdout.startswith(f"discarded 1 record of {trouble.names[1]}: ")
    assert of_key(published(trouble.topic, 5), b"a") == ["0", "2"]


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
