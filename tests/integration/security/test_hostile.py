"""Hostile texts go all the way to Kafka, and into every line that tells of them."""

from __future__ import annotations

import json
import logging
import uuid
from typing import Any

import psycopg
import pytest

from harvest_dagster import Message, OutboxError
from harvest_dagster.cli.console import Console
from harvest_dagster.errors import HarvestError
from harvest_dagster.ledger import events
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.keys import scoped
from harvest_dagster.ledger.once import Request, Written, last_written, write_once
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import give
from tests.support.account import judge, read
from tests.support.command import Harvest
from tests.support.databases import Stashed
from tests.support.hostile import TEXTS
from tests.support.place import Place
from tests.support.running import StartHarvest
from tests.support.waiting import until

TABLE = """harvest"'; DROP TABLE outbox; --{table}"""


def is_shown(text: str) -> bool:
    """Tell whether a terminal shows every character of some lines."""
    return all(line.isprintable() for line in text.split("\n"))


def test_from_end_to_end(
    place: Place, start_harvest: StartHarvest, harvest: Harvest, caplog: pytest.LogCaptureFixture
) -> None:
    """They arrive as they were; topics that are none wait, and no line of a log is broken."""
    caplog.set_level(logging.DEBUG, "harvest_dagster")
    table = TableName(TABLE)
    with psycopg.connect(place.postgres) as connection:
        create(connection, table, Kind.NATIVE)
        for text in TEXTS:
            connection.execute(
                f"INSERT INTO {table.sql} (kafka_topic, kafka_key, kafka_value)"
                " VALUES (%s, %s, %s)",
                (text, text.encode(), text.encode()),
            )
    good = [Message(place.topic, text, text, {text: text}) for text in TEXTS]
    place.stash(good[::2], table.sql)
    lines = "".join(_as_line(message) for message in good[1::2])
    assert harvest("stash", "--outbox", table.sql, stdin=lines).returncode == 0
    running = start_harvest(place.config(outbox=table.sql))
    until(lambda: running.harvest.totals().published == len(good), what="the good go out")
    until(lambda: len(place.kinds("held")) == len(TEXTS), what="the others are held")
    running.harvest.stop(20)
    judge([*place.stashed, *good[1::2]], read(place.kafka, place.topic), "exactly_once")
    assert sum("held" in record.getMessage() for record in caplog.records) == len(TEXTS)
    for record in caplog.records:
        assert Console("text").format(record).isprintable()
        assert json.loads(line := Console("json").format(record))["time"]
        assert line.isprintable()
    for words in (("status",), ("history",), ("outbox", "stats")):
        shown = harvest(*words, *_of(words, place, table))
        assert shown.returncode == 0, shown.stderr
        assert is_shown(shown.stdout)
    assert place.rows("SELECT count(*) FROM outbox") == [(0,)]


def _of(words: tuple[str, ...], place: Place, table: TableName) -> list[str]:
    named = [] if words[0] == "outbox" else ["--name", place.name]
    return [*named, "--outbox", table.sql]


def _as_line(message: Message) -> str:
    headers = [[key, (value or b"").decode()] for key, value in message.headers]
    fields = {"topic": message.topic, "headers": headers}
    fields |= {"key": (message.key or b"").decode(), "value": (message.value or b"").decode()}
    return json.dumps(fields) + "\n"


def test_holders(connection: psycopg.Connection[Any], harvest: Harvest) -> None:
    """Whatever a leader calls itself, it is shown in its line."""
    for shard, text in enumerate(TEXTS):
        lease = leases.acquire(connection, "outbox", shard, text, 60.0)
        leases.refresh(connection, lease, text)
        leases.release(connection, "outbox", shard, text, "revoked", {"reason": text})
    connection.commit()
    shown = harvest("lease", "show")
    assert is_shown(shown.stdout)
    assert shown.stdout.count("\n") == 1 + len(TEXTS)
    for words in (("lease", "history"), ("history", "--limit", "1000")):
        told = harvest(*words, *(("--limit", "1000") if words[0] == "lease" else ()))
        assert is_shown(told.stdout)
        assert told.stdout.count("\n") == 1 + 3 * len(TEXTS)


def test_names_topics_and_keys_on_the_command_line(
    connection: psycopg.Connection[Any], harvest: Harvest
) -> None:
    """As options they are looked for, and found nowhere; nothing of the database is gone."""
    for text in TEXTS:
        named = f"--name={text}"
        for words in (
            ("parked", "discard", "--yes", f"--topic={text}", f"--key={text}", named),
            ("lease", "show", named),
            ("outbox", "grant", "--as=reader", f"--outbox={text}", "--", text),
        ):
            done = harvest(*words)
            assert is_shown(done.stdout + done.stderr), words
            assert done.returncode in {0, 1}, (words, done.stderr)
        assert events.read(connection, text, [text]) == []
        with pytest.raises(OutboxError, match="there is no role"):
            give(connection, text, [])
    row = connection.execute("SELECT count(*) FROM outbox").fetchone()
    assert row == (0,)


def test_sql_function(connection: psycopg.Connection[Any]) -> None:
    """harvest.stash takes them as texts, and as a table's name finds none such."""
    for text in TEXTS:
        headers = json.dumps({text: text})
        connection.execute("SELECT harvest.stash('t', %s, %s, %s)", (text, text, headers))
        connection.commit()
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT harvest.stash('t', 'k', 'v', outbox => %s)", (text,))
        connection.rollback()
    rows = connection.execute("SELECT * FROM outbox ORDER BY id").fetchall()
    assert len(rows) == len(TEXTS)
    kept = connection.execute("SELECT kafka_key, kafka_header_keys FROM outbox ORDER BY id")
    assert kept.fetchall() == [(text.encode(), [text]) for text in TEXTS]


def _as_begun(written: Written) -> Written:
    return written


def test_idempotency_keys(connection: psycopg.Connection[Any]) -> None:
    """A key of any text, and a scope, is one key, and stays in its line of an error."""
    connection.commit()
    keys = [*TEXTS, *(scoped("k", text) for text in TEXTS if text)]
    for key in keys:
        first = Request(uuid.uuid4(), key, TableName("outbox"))
        write_once(connection, first, _as_begun)
        again = Request(uuid.uuid4(), key, TableName("outbox"), "error")
        with pytest.raises(OutboxError) as refused:
            write_once(connection, again, _as_begun)
        assert str(refused.value).isprintable()
        known = last_written(connection, again)
        assert known is not None
        assert known.write == first.write
    row = connection.execute("SELECT count(*) FROM harvest.written").fetchone()
    assert row == (len(keys),)


def test_tables(connection: psycopg.Connection[Any], stashed: Stashed, harvest: Harvest) -> None:
    """A table of any name that PostgreSQL has and we take is made, and stashed into."""
    line = '{"topic": "t", "key": "k", "value": "v"}'
    taken = 0
    for text in TEXTS:
        try:
            name = TableName.parse('"' + text.replace('"', '""') + '"')
        except HarvestError:
            continue
        assert harvest("outbox", "create", "--outbox", name.sql).returncode == 0
        assert harvest("stash", "--outbox", name.sql, stdin=line).returncode == 0
        assert len(stashed(name.sql)) == 1
        taken += 1
    assert taken > 10
    assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
