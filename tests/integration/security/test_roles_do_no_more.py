"""The roles of PostgreSQL: none can do what is another's work."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster.outbox.privileges import GRANTS
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import Grant
from tests.support.roles import Roles

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
    """Return whether a role has what a statement takes."""
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
    """Return what a grant is on, as the catalogue names it, and the privilege."""
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
