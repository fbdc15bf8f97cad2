from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from harvest_dagster import Message, stash
from harvest_dagster.outbox.privileges import GRANTS, harvester_grants, stasher_grants
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import Grant, give, lacking, own_grants
from tests.support.roles import url_as

MESSAGE = Message("orders", "7", "v")
TABLES = {
    "outbox": Kind.NATIVE,
    "goharvest_outbox": Kind.GOHARVEST,
    '"Shop"."Out box"': Kind.NATIVE,
    "shop.outbox": Kind.GOHARVEST,
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, connection: psycopg.Connection[Any]) -> TableName:
    """Tables of either kind, in the public schema and in others."""
    table = TableName.parse(request.param)
    connection.execute('CREATE SCHEMA "Shop"')
    connection.execute("CREATE SCHEMA shop")
    create(connection, table, TABLES[request.param])
    connection.commit()
    return table


@pytest.fixture
def as_role(
    connection: psycopg.Connection[Any], database: str, role: str
) -> Iterator[Callable[[list[Grant]], psycopg.Connection[Any]]]:
    """Connect as the role, with just the grants that it is given."""
    opened: list[psycopg.Connection[Any]] = []

    def connect(grants: list[Grant]) -> psycopg.Connection[Any]:
        for grant in grants:
            connection.execute(grant.sql(role))
        connection.commit()
        opened.append(psycopg.connect(url_as(role, database)))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_stasher_may_stash(
    connection: psycopg.Connection[Any], table: TableName, as_role: Any
) -> None:
    """With the stasher's grants a role stashes by INSERT, COPY, with ids, and in SQL."""
    stasher = as_role(stasher_grants(connection, table))
    stash(stasher, MESSAGE, outbox=table.sql)
    stash(stasher, [MESSAGE], outbox=table.sql)
    stash(stasher, [MESSAGE], outbox=table.sql, ids=True)
    stasher.execute("SELECT harvest.stash('t', 'k', 'v', outbox => %s)", (table.sql,))
    stasher.commit()
    assert connection.execute(f"SELECT count(*) FROM {table.sql}").fetchone() == (4,)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT kafka_value FROM {}",
        "SELECT kafka_key FROM {}",
        "DELETE FROM {}",
        "UPDATE {} SET kafka_value = NULL",
        "TRUNCATE {}",
    ],
)
def test_stasher_may_no_more(
    connection: psycopg.Connection[Any], table: TableName, as_role: Any, statement: str
) -> None:
    """With the stasher's grants a role neither reads messages nor changes any."""
    stasher = as_role(stasher_grants(connection, table))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        stasher.execute(statement.format(table.sql))


def test_harvester_may_harvest(
    connection: psycopg.Connection[Any], table: TableName, as_role: Any
) -> None:
    """With the harvester's grants a role reads messages and deletes them."""
    stash(connection, MESSAGE, outbox=table.sql)
    harvester = as_role(harvester_grants(connection, table))
    [row] = harvester.execute(f"SELECT * FROM {table.sql}").fetchall()
    deleted = harvester.execute(f"DELETE FROM {table.sql} WHERE id = %s", (row[0],))
    assert deleted.rowcount == 1


def test_harvester_may_mark(connection: psycopg.Connection[Any], as_role: Any) -> None:
    """With the harvester's grants a role marks rows of goharvest's table."""
    table = TableName("goharvest_outbox")
    stash(connection, MESSAGE, outbox=table.sql)
    harvester = as_role(harvester_grants(connection, table))
    marked = harvester.execute("UPDATE goharvest_outbox SET leader_id = gen_random_uuid()")
    assert marked.rowcount == 1


@pytest.mark.parametrize("change", ["INSERT INTO {} DEFAULT VALUES", "UPDATE {} SET id = id"])
def test_harvester_may_no_more(
    connection: psycopg.Connection[Any], table: TableName, as_role: Any, change: str
) -> None:
    """With the harvester's grants a role neither adds messages nor changes any."""
    harvester = as_role(harvester_grants(connection, table))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        harvester.execute(change.format(table.sql))


@pytest.mark.parametrize("who", GRANTS)
def test_lacking(
    connection: psycopg.Connection[Any], table: TableName, role: str, who: str
) -> None:
    """A role without grants lacks each of them by name, and none once they are mended."""
    connection.execute("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    grants = GRANTS[who](connection, table)
    findings = lacking(connection, role, grants)
    assert [finding.what for finding in findings] == [
        f"{role} lacks {grant.privilege} on {grant.on}" for grant in grants
    ]
    for finding in findings:
        connection.execute(finding.mend[0])
    assert lacking(connection, role, grants) == []
    connection.rollback()


@pytest.mark.parametrize("who", GRANTS)
def test_given(connection: psycopg.Connection[Any], table: TableName, role: str, who: str) -> None:
    """A role that is given its grants lacks none: PostgreSQL knows all that the rooms name."""
    grants = GRANTS[who](connection, table)
    give(connection, role, grants)
    assert lacking(connection, role, grants) == []
    connection.rollback()


def test_each_table_is_granted(connection: psycopg.Connection[Any]) -> None:
    """Each table of the schema `harvest` is granted to some role: nobody else could use it."""
    tables = connection.execute(
        "SELECT 'harvest.' || tablename FROM pg_tables WHERE schemaname = 'harvest'"
    ).fetchall()
    assert tables
    assert {name for (name,) in tables} <= {grant.on for grant in own_grants(*GRANTS)}


def test_each_grant_is_needed(
    connection: psycopg.Connection[Any], table: TableName, role: str
) -> None:
    """Any one of the stasher's grants that is taken away again is lacking, and no other."""
    grants = stasher_grants(connection, table)
    connection.execute("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    for taken in grants:
        for grant in grants:
            connection.execute(grant.sql(role))
        connection.execute(taken.sql(role).replace("GRANT", "REVOKE").replace(" TO ", " FROM "))
        [finding] = lacking(connection, role, grants)
        assert finding.what == f"{role} lacks {taken.privilege} on {taken.on}"
    connection.rollback()


def test_no_such_role(connection: psycopg.Connection[Any]) -> None:
    """A role that is not there is an error that tells how to make it."""
    [finding] = lacking(connection, 'no"body', [])
    assert finding.what == 'there is no role no"body'
    assert finding.mend == ('CREATE ROLE "no""body"',)
