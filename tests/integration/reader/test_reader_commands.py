"""`harvest reader`: run by a file, seen, reset, and traced."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.ledger import events
from tests.support.reading import Shelf
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.place import Place
    from tests.support.reaping import Reap

RUN = (sys.executable, "-m", "harvest_dagster", "reader", "run")
FIRST = '{"id": "a", "cents": 100, "tags": ["x"]}'
SECOND = '{"id": "a", "cents": 250}'


@pytest.fixture
def kafka(place: Place) -> dict[str, str]:
    """Where Kafka is."""
    return {"HARVEST_KAFKA": place.kafka["bootstrap.servers"]}


def file_of(shelf: Shelf, folder: Path, text: str) -> str:
    """Write a reader.yaml."""
    file = folder / "reader.yaml"
    file.write_text(f"name: {shelf.name}\ntopics: {shelf.place.topic}\n{text}")
    return str(file)


def put(shelf: Shelf, *values: str) -> None:
    """Send JSON."""
    for value in values:
        shelf.produce(value.encode(), [("trace", b"t1")])
    shelf.flush()


def test_run_by_an_upsert(
    shelf: Shelf, reap: Reap, harvest: Harvest, kafka: dict[str, str], tmp_path: Path
) -> None:
    """Each field is a column, the last word of a key stands, and what was applied is shown."""
    with psycopg.connect(shelf.url) as connection:
        connection.execute("CREATE TABLE cart (id text PRIMARY KEY, cents int, tags jsonb)")
    put(shelf, FIRST, SECOND)
    file = file_of(shelf, tmp_path, "upsert: {table: cart, key: id}\n")
    running = reap("--file", file, program=RUN)
    until(lambda: shelf.rows("SELECT id, cents, tags FROM cart") == [("a", 250, ["x"])])
    until(lambda: "2 applied" in running.log)
    shown = harvest("reader", "status", "--name", shelf.name, **kafka)
    assert shown.stdout.splitlines()[0] == f"reader   {shelf.name}"
    assert shelf.name in harvest("reader", "list").stdout
    assert running.stopped() == 0


def test_run_by_a_statement(shelf: Shelf, reap: Reap, tmp_path: Path) -> None:
    """Its parameters are what a message says; a field that is not there is NULL."""
    with psycopg.connect(shelf.url) as connection:
        connection.execute("CREATE TABLE paid (id text, cents int, tags jsonb, trace text, at int)")
    put(shelf, FIRST, SECOND)
    insert = "INSERT INTO paid VALUES (%(value.id)s, %(value.cents)s, %(value.tags)s,"
    statement = f"statement: {insert} %(headers.trace)s, %(offset)s)\n"
    running = reap("--file", file_of(shelf, tmp_path, statement), program=RUN)
    rows = [("a", 100, ["x"], "t1", 0), ("a", 250, None, "t1", 1)]
    until(lambda: shelf.rows("SELECT * FROM paid ORDER BY at") == rows)
    assert running.stopped() == 0


def test_a_message_that_does_not_fit(shelf: Shelf, reap: Reap, tmp_path: Path) -> None:
    """It ends the command, which names it."""
    with psycopg.connect(shelf.url) as connection:
        connection.execute("CREATE TABLE cart (id text PRIMARY KEY, cents int)")
    put(shelf, SECOND, FIRST)
    running = reap(
        "--file", file_of(shelf, tmp_path, "upsert: {table: cart, key: id}\n"), program=RUN
    )
    until(lambda: f"{shelf.place.topic}, partition 0, offset 1: column" in running.log)
    assert shelf.rows("SELECT * FROM cart") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "give what is done with a message: statement, or upsert"),
        ("upsert: {table: a b, key: id}\n", "table: 'a b' is no table name"),
        ("statement: SELECT 1\nwings: 2\n", "wings: no such setting"),
        ("statement: SELECT 1\npostgres: x\n", "postgres: give it as HARVEST_POSTGRES"),
        ("statement: [\n", "line 4: this is no YAML"),
    ],
)
def test_a_file_that_is_wrong(
    shelf: Shelf, harvest: Harvest, kafka: dict[str, str], tmp_path: Path, text: str, why: str
) -> None:
    """What is wrong is said in one line, with the file."""
    file = file_of(shelf, tmp_path, text)
    refused = harvest("reader", "run", "--file", file, **kafka)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"harvest: {file}: ")
    assert why in refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "which reader? give --file reader.yaml, or --name"),
        (("--name", "totals"), "give what is read, and what is done with it, by --file"),
        (("--file", "nowhere.yaml"), "nowhere.yaml: it can't be read: No such file"),
    ],
)
def test_run_of_nothing(
    harvest: Harvest, kafka: dict[str, str], words: tuple[str, ...], why: str
) -> None:
    """It says what to give."""
    refused = harvest("reader", "run", *words, **kafka)
    assert (refused.returncode, why in refused.stderr) == (1, True), refused.stderr


def test_reset(shelf: Shelf, harvest: Harvest, kafka: dict[str, str]) -> None:
    """It goes on elsewhere; what counted by its UUID is not applied again."""
    shelf.write("A1O", "B1C", "-")
    with shelf.read() as reading:
        reading.caught_up(3)
    options = ("--name", shelf.name, "--topic", shelf.place.topic)
    done = harvest("reader", "reset", *options, "--partition", "0", "--to", "earliest", **kafka)
    assert done.stdout == f"{shelf.place.topic}, partition 0: goes on at 0 instead of 3\n"
    with shelf.read():
        shelf.has_seen("A1O", "-", "-")
    done = harvest("reader", "reset", *options, "--to", "end", **kafka)
    assert len(done.stdout.splitlines()) == 4
    shelf.write("B2K")
    with shelf.read():
        shelf.has_seen("A1O", "-", "-", "B2K")
    with psycopg.connect(shelf.place.postgres) as connection:
        found = events.read(connection, shelf.name, ["reset"])
    assert [event.detail["to"] for event in found] == ["end", "earliest"]


def test_reset_while_it_reads(shelf: Shelf, harvest: Harvest, kafka: dict[str, str]) -> None:
    """Who reads meanwhile is fenced, and moves nothing back."""
    reading = shelf.reading()
    shelf.write("A1O")
    shelf.has_seen("A1O")
    options = ("--name", shelf.name, "--topic", shelf.place.topic)
    harvest("reader", "reset", *options, "--partition", "0", "--to", "0", **kafka)
    shelf.write("A2O")
    reading.join()
    assert shelf.seen() == ["A1O"]
    with shelf.read():
        shelf.has_seen("A1O", "A2O")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--to", "7"), "to: give earliest, end, or an offset with --partition"),
        (("--to", "end", "--partition", "9"), "partition: "),
        ((), "to: give earliest, end"),
    ],
)
def test_reset_to_nowhere(
    shelf: Shelf, harvest: Harvest, kafka: dict[str, str], words: tuple[str, ...], why: str
) -> None:
    """It says what may stand there."""
    topic = ("--name", shelf.name, "--topic", shelf.place.topic)
    refused = harvest("reader", "reset", *topic, *words, **kafka)
    assert (refused.returncode, why in refused.stderr) == (1, True)


def traced(text: str) -> list[Any]:
    """Read what was printed."""
    return [json.loads(line) for line in text.splitlines()]


def test_trace_of_a_file(harvest: Harvest, tmp_path: Path) -> None:
    """A line out for each line in; a bad one is named."""
    line = (
        '{"journal": "j", "producer": "A", "clock": 1, "flags": "CONTINUE", "begin": 0, "end": 1}'
    )
    file = tmp_path / "messages.jsonl"
    file.write_text(f'{line}\n{{"checkpoint": {{"horizon_ns": 0}}}}\n')
    assert traced(harvest("reader", "trace", "--file", str(file), "--ring", "3").stdout) == [
        {"outcome": "ContinueBeginSpan", "emitted": []},
        {"checkpoint": [{"journal": "j", "producer": "A", "last_ack": 0, "begin": 0}]},
    ]
    refused = harvest("reader", "trace", "--file", "-", stdin=f"{line}\nx\n")
    assert (refused.returncode, "line 2: " in refused.stderr) == (1, True)
    assert harvest("reader", "trace").returncode == 2


def test_trace_of_a_topic(shelf: Shelf, harvest: Harvest, kafka: dict[str, str]) -> None:
    """It shows why a message did not come, also where a UUID is none."""
    shelf.write("A1C", "A2C", "A2C", "-", "A3K")
    shelf.produce(b"bad", [("uuid", b"short")])
    shelf.flush()
    found = traced(
        harvest("reader", "trace", "--topic", shelf.place.topic, "--ring", "1", **kafka).stdout
    )
    outcomes = [line.get("outcome") for line in found]
    assert outcomes[:3] == ["ContinueBeginSpan", "ContinueExtendSpan", "ContinueTxnClockLarger"]
    assert outcomes[3:] == ["OutsideCommit", "AckCommitReplay", None]
    producer = "01" + b"A".hex() * 5
    assert found[4]["emitted"] == [[producer, 1], [producer, 2], [producer, 3]]
    assert found[4]["replayed"] == [0, 4]
    assert found[0] == {
        "journal": f"{shelf.place.topic}/0",
        "producer": producer,
        "clock": 1,
        "flags": "CONTINUE",
        "begin": 0,
        "end": 1,
        "outcome": "ContinueBeginSpan",
        "emitted": [],
    }
    assert "offset 5: its header uuid is no UUID" in found[5]["error"]
