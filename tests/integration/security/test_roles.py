"""The roles of PostgreSQL: each can do all of its work with its grants, and nothing more."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster import Message, stash
from harvest_dagster.ledger import lease as leases
from harvest_dagster.outbox.privileges import GRANTS
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import Grant
from harvest_dagster.work import tours
from tests.support.account import read
from tests.support.command import Harvest
from tests.support.place import Place
from tests.support.running import StartHarvest
from tests.support.waiting import until

PASSWORD = "a-password-of-a-role"  # noqa: S105 - of roles made up for the test
Roles = dict[str, str]


@pytest.fixture
def roles(connection: psycopg.Connection[Any], harvest: Harvest, database: str) -> Iterator[Roles]:
    """A role of each kind, by the command that grants; tell the URL of each."""
    names = {who: f"{who}-{uuid.uuid4().hex[:12]}" for who in (*GRANTS, "stranger")}
    for who, name in names.items():
        connection.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{PASSWORD}'")
        connection.commit()
        if who in GRANTS:
            granted = harvest("outbox", "grant", name, "--as", who)
            assert granted.returncode == 0, granted.stderr
    url = sa.make_url(database)
    yield {
        who: url.set(username=name, password=PASSWORD).render_as_string(hide_password=False)
        for who, name in names.items()
    }
    connection.rollback()
    for name in names.values():
        connection.execute(f'DROP OWNED BY "{name}"')
        connection.execute(f'DROP ROLE "{name}"')
    connection.commit()


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


READS = [
    "SELECT kafka_value FROM outbox",
    "SELECT kafka_key FROM outbox",
    "SELECT kafka_value FROM harvest.parked",
    "SELECT kafka_value FROM harvest.retained",
    "SELECT * FROM harvest.lease",
    "SELECT * FROM harvest.event",
]
FORGES = [
    "INSERT INTO outbox (kafka_topic) VALUES ('t')",
    "UPDATE outbox SET kafka_value = 'forged'",
    "UPDATE outbox SET kafka_topic = 'other'",
]
ERASES = ["DELETE FROM outbox", "DELETE FROM harvest.parked", "DELETE FROM harvest.event"]
LEADS = [
    "UPDATE harvest.lease SET epoch = epoch + 1",
    "UPDATE harvest.lease SET holder = 'me', expires_at = 'infinity'",
    "DELETE FROM harvest.lease",
    "INSERT INTO harvest.claim SELECT 'outbox', 0, 1, 1, '{}', 0",
    "DELETE FROM harvest.claim",
]
OWNS = [
    "TRUNCATE outbox",
    "TRUNCATE harvest.event",
    "DROP TABLE outbox",
    "ALTER TABLE outbox ADD COLUMN more text",
    "ALTER TABLE harvest.lease DISABLE TRIGGER ALL",
    "CREATE TABLE harvest.more (id int)",
    "CREATE FUNCTION harvest.more() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE RULE more AS ON INSERT TO outbox DO INSTEAD NOTHING",
    "INSERT INTO harvest.migration (version, name) VALUES (99, 'forged')",
    "UPDATE harvest.identity SET id = gen_random_uuid()",
    "UPDATE harvest.event SET kind = 'nothing'",
    "SELECT setval(pg_get_serial_sequence('outbox', 'id'), 1)",
    "COPY outbox TO PROGRAM 'cat'",
    "CREATE ROLE more",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT rolpassword FROM pg_authid",
]
FORBIDDEN = {
    "stasher": [*READS, *FORGES[1:], *ERASES, *LEADS, *OWNS],
    "spark": [*READS[2:], *FORGES[1:], *ERASES, *LEADS, *OWNS],
    "harvester": [*FORGES, "DELETE FROM harvest.lease", *OWNS],
    "operator": [*FORGES[1:], ERASES[0], ERASES[2], *LEADS, READS[3], *OWNS],
    "reader": [
        *FORGES,
        *ERASES,
        *LEADS,
        READS[3],
        "UPDATE harvest.lease SET resign = true",
        "UPDATE harvest.parked SET requeued_at = now()",
        "INSERT INTO harvest.event (name, shard, kind) VALUES ('outbox', 0, 'forged')",
        *OWNS,
    ],
    "stranger": [
        *READS,
        *FORGES,
        *ERASES,
        *LEADS,
        "SELECT harvest.stash('t', 'k', 'v')",
        *OWNS,
    ],
}


@pytest.mark.parametrize("who", FORBIDDEN)
def test_nothing_more(roles: Roles, who: str) -> None:
    """What is another's work is refused."""
    with psycopg.connect(roles[who], autocommit=True) as connection:
        assert [each for each in FORBIDDEN[who] if may(connection, each)] == []


def may(connection: psycopg.Connection[Any], statement: str) -> bool:
    """Tell whether a role has what a statement takes."""
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def test_nothing_that_is_not_granted(connection: psycopg.Connection[Any], roles: Roles) -> None:
    """On tables, columns, sequences and schemas each role has what its grants name, and no more."""
    for who, url in roles.items():
        role = sa.make_url(url).username
        found = connection.execute(PRIVILEGES, {"role": f'"{role}"'}).fetchall()
        least = GRANTS[who](connection, TableName("outbox")) if who in GRANTS else []
        assert set(found) == {named(connection, grant) for grant in least}, who


def named(connection: psycopg.Connection[Any], grant: Grant) -> tuple[str, str]:
    """Tell what a grant is on, as the catalogue does, and the privilege."""
    privilege, _, column = grant.privilege.partition(" (")
    kind, _, name = grant.on.rpartition(" ")
    cast = "regnamespace" if kind == "SCHEMA" else "regclass"
    row = connection.execute(f"SELECT %s::{cast}::text", (name,)).fetchone()
    assert row
    return (f"{row[0]}.{column.rstrip(')')}" if column else row[0], privilege)


PRIVILEGES = """
WITH granted (at, acl) AS (
    SELECT oid::regclass::text, relacl FROM pg_class
     UNION ALL SELECT attrelid::regclass || '.' || attname, attacl FROM pg_attribute
     UNION ALL SELECT oid::regnamespace::text, nspacl FROM pg_namespace
     UNION ALL SELECT oid::regprocedure::text, proacl FROM pg_proc
)
SELECT at, privilege_type FROM granted, aclexplode(acl) WHERE grantee = %(role)s::regrole
"""


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
