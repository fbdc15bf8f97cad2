"""The roles of PostgreSQL: each can do all of its work with its grants."""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster import Message, stash
from harvest_dagster.ledger import lease as leases
from harvest_dagster.work import tours
from tests.support.account import read
from tests.support.command import Harvest
from tests.support.place import Place
from tests.support.roles import PASSWORD, Roles
from tests.support.running import StartHarvest
from tests.support.waiting import until


def test_the_stasher_stashes(harvest: Harvest, roles: Roles, stashed: Any) -> None:
    """One by one, many at once, as JSON lines, and in SQL."""
    message = Message("orders", "7", "v")
    with psycopg.connect(roles["stasher"]) as stasher:
        stash(stasher, message)
        stash(stasher, [message] * 100)
        stasher.execute("SELECT harvest.stash('orders', '7', 'v')")
    line = '{"topic": "orders", "key": "7", "value": "v"}'
    assert harvest("stash", stdin=line, HARVEST_POSTGRES=roles["stasher"]).returncode == 0
    assert stashed() == [message] * 103


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"retention": 3600.0}, id="exactly_once, kept"),
        pytest.param(
            {"delivery": "at_least_once", "outbox": "goharvest_outbox", "marks": "rows"},
            id="at_least_once, rows of goharvest's",
        ),
    ],
)
def test_the_harvester_harvests(
    place: Place, start_harvest: StartHarvest, roles: Roles, harvest: Harvest, more: dict[str, Any]
) -> None:
    """It leads, marks, publishes, purges, keeps, sets aside, and remarks."""
    outbox = more.get("outbox", "outbox")
    name = sa.make_url(roles["harvester"]).username or ""
    assert harvest("outbox", "grant", name, "--as", "harvester", "--outbox", outbox).stdout
    small = place.new_topic(max_message_bytes="2000")
    with place.connect() as connection:  # what a leader that died has left
        left = leases.acquire(connection, place.name, 0, "gone", 0.1)
        connection.execute(
            "INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)"
            " VALUES (%s, 0, %s, 1, '{[1,2)}', 1)",
            (place.name, left.epoch),
        )
    place.put(50, outbox=outbox)
    running = start_harvest(place.config(postgres=roles["harvester"], **more))
    place.drained(outbox=outbox)
    place.stash([Message(small, "k", "x" * 5000)], outbox)
    until(lambda: "parked" in place.kinds(), what="a record is parked")
    running.harvest.stop(20)
    assert len(read(place.kafka, place.topic)) == 50
    assert {"acquired", "remarked", "parked", "tour_ended", "revoked"} <= set(place.kinds())
    kept = place.rows("SELECT count(*) FROM harvest.retained")[0][0]
    assert kept == (50 if "retention" in more else 0)


def park(connection: psycopg.Connection[Any], *ids: int) -> None:
    """Have records set aside."""
    for number in ids:
        connection.execute(
            "INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_key, kafka_value,"
            " kafka_header_keys, kafka_header_values, reason, holds_key)"
            " VALUES ('outbox', 0, %s, 'orders', '7', 'v', '{}', '{}', 'too large', true)",
            (number,),
        )
    connection.commit()


def test_the_operator_operates(
    connection: psycopg.Connection[Any], harvest: Harvest, roles: Roles, stashed: Any
) -> None:
    """It requeues, discards, asks a leader to resign and a tour to end, and looks."""
    run = partial(harvest, HARVEST_POSTGRES=roles["operator"])
    park(connection, 1, 2)
    assert run("parked", "requeue", "1").stdout == "requeued 1 record into outbox: 1\n"
    assert run("parked", "discard", "2", "--yes").stdout == "discarded 1 record of outbox: 2\n"
    assert stashed() == [Message("orders", "7", "v")]
    lease = leases.acquire(connection, "outbox", 0, "somebody", 60.0)
    tours.begin(connection, lease, uuid.uuid4(), "a run")
    connection.commit()
    with psycopg.connect(roles["operator"]) as operator:
        assert leases.ask_to_resign(operator, "outbox", 0)
        assert tours.ask_to_drain(operator, "outbox", 0)
    looks(run)
    kinds = [event["kind"] for event in json.loads(run("history", "--json").stdout)]
    assert sorted(kinds) == ["acquired", "discarded", "requeued"]


def test_the_reader_looks(
    connection: psycopg.Connection[Any], harvest: Harvest, roles: Roles
) -> None:
    """It sees status, leases, history, what waits and what is set aside."""
    park(connection, 1)
    run = partial(harvest, HARVEST_POSTGRES=roles["reader"])
    looks(run)
    assert run("parked", "show", "1").returncode == 0
    with psycopg.connect(roles["reader"]) as reader:
        assert reader.execute("SELECT * FROM outbox").fetchall() == []


def looks(run: Any) -> None:
    """See that all that shows and changes nothing works."""
    for words in (
        ("status",),
        ("lease", "show"),
        ("lease", "history"),
        ("history",),
        ("parked", "list"),
        ("outbox", "stats"),
        ("outbox", "check"),
    ):
        shown = run(*words)
        assert shown.returncode == 0, (words, shown.stderr)


def test_grant_prints_what_it_did(harvest: Harvest, roles: Roles) -> None:
    """The SQL of it, which a dry run prints alike, for whoever would rather run it himself."""
    role = sa.make_url(roles["stranger"]).username or ""
    dry = harvest("outbox", "grant", role, "--as", "reader", "--dry-run")
    before = harvest("outbox", "check", "--reader", role)
    done = harvest("outbox", "grant", role, "--as", "reader")
    after = harvest("outbox", "check", "--reader", role)
    assert dry.stdout == done.stdout
    assert (dry.stderr, done.stderr) == ("", f"granted to {role}\n")
    assert f'GRANT SELECT ON "outbox" TO "{role}";\n' in dry.stdout
    assert (before.returncode, after.returncode) == (1, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("nobody", "--as", "reader"),
            'there is no role nobody: make it with CREATE ROLE "nobody"',
        ),
        (
            ("pg_monitor", "--as", "reader", "--outbox", "nowhere"),
            "there is no table nowhere: make it with `harvest outbox create",
        ),
    ],
)
def test_grant_is_refused(harvest: Harvest, words: tuple[str, ...], said: str) -> None:
    """Without the role, or the table, it says how to make it."""
    refused = harvest("outbox", "grant", *words)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert said in refused.stderr


def test_what_is_lacking_is_told(harvest: Harvest, roles: Roles) -> None:
    """A role that may not is told what to do, in one line."""
    refused = harvest("parked", "list", HARVEST_POSTGRES=roles["stasher"])
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "permission denied for table parked" in refused.stderr
    assert "`harvest outbox grant`" in refused.stderr
    assert PASSWORD not in refused.stderr
