"""A database of version 0.1, with a backlog and a leader at work, is brought up to date."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from harvest_dagster import Message, stash
from harvest_dagster.embedded import Servers
from harvest_dagster.errors import RivalError
from harvest_dagster.ledger import lease
from harvest_dagster.outbox.schema import Kind, create, mend
from harvest_dagster.postgres import migrations
from harvest_dagster.postgres.names import TableName
from harvest_dagster.testing import stashed
from harvest_dagster.work import tours
from tests.support.databases import new_database

OUTBOX = TableName("outbox")
OLD_MIGRATIONS = """
    CREATE TABLE harvest.migration (
        version    integer     PRIMARY KEY,
        name       text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO harvest.migration SELECT version, name, applied_at FROM was
"""
LEADS = """
    INSERT INTO harvest.lease VALUES ('outbox', 0, 7, gen_random_uuid(), 'old', now(), now(),
                                      now() + interval '1 minute', false, 'outbox'::regclass, 1);
    INSERT INTO harvest.tour (name, shard, id, epoch, run, started_at, seen_at)
    VALUES ('outbox', 0, gen_random_uuid(), 7, 'run-1', now(), now());
    INSERT INTO harvest.claim VALUES ('outbox', 0, 7, 3, '{[1,3)}', 2)
"""
OLD_TELL = """
    UPDATE harvest.tour
       SET seen_at = clock_timestamp(), marked = 9, published = 8, purged = 7, remarked = 1,
           parked = 2, in_flight = 1
     WHERE name = 'outbox' AND shard = 0
"""
"""What a tour of 0.1 says of itself."""
OLD_LEAD = """
    INSERT INTO harvest.lease AS lease
           (name, shard, epoch, leader_id, holder, acquired_at, renewed_at, expires_at)
    SELECT %s, 0, 1, gen_random_uuid(), 'old', now(), now(), now()
        ON CONFLICT (name, shard) DO UPDATE SET epoch = lease.epoch + 1
"""
"""How a candidate of 0.1 takes a lease."""


@pytest.fixture
def landed(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a database as 0.1 left it: the first line of migrations, and no other."""
    with new_database(servers, "template1") as url:
        with psycopg.connect(url) as connection, monkeypatch.context() as then:
            then.setattr(migrations, "ROOMS", [])
            create(connection, OUTBOX, Kind.NATIVE)
            connection.execute("CREATE TEMP TABLE was AS SELECT * FROM harvest.migration")
            connection.execute("DROP TABLE harvest.migration")
            connection.execute(OLD_MIGRATIONS)
            stash(connection, [Message("t", str(number), b"v") for number in range(5)])
            connection.execute(LEADS)
        yield url


def test_in_one_transaction(landed: str) -> None:
    """All is brought up to date or nothing; the backlog and what is in flight stay."""
    with psycopg.connect(landed) as connection:
        lacking = [each.number for each in migrations.pending(connection)]
        assert lacking[0] == "ledger/0001"
        mend(connection, OUTBOX, native=False)
        connection.rollback()
        assert [each.number for each in migrations.pending(connection)] == lacking
        mend(connection, OUTBOX, native=False)
        connection.commit()
        assert migrations.pending(connection) == []
        assert connection.execute("SELECT count(*) FROM harvest.claim").fetchone() == (1,)
    assert len(stashed(landed)) == 5


def test_an_old_leader_goes_on(landed: str) -> None:
    """A tour of 0.1 says how far it is by its columns, also afterwards; it is read all the same."""
    with psycopg.connect(landed, autocommit=True) as connection:
        mend(connection, OUTBOX, native=False)
        connection.execute(OLD_TELL)
        (row,) = tours.read(connection, "outbox")
    assert (row.done, row.alive, row.figure("in_flight"), row.figure("parked")) == (8, True, 1, 2)


@pytest.mark.parametrize("name", ["outbox", "new"])
def test_an_old_leader_leads_an_outbox(landed: str, name: str) -> None:
    """What 0.1 leads afterwards is an outbox, whose next leader may be of either version."""
    with psycopg.connect(landed, autocommit=True) as connection:
        mend(connection, OUTBOX, native=False)
        connection.execute(OLD_LEAD, (name,))
        (old,) = lease.read(connection, name)
        assert old.word == "outbox"
        assert lease.acquire(connection, name, 0, "new", 60).epoch == old.epoch + 1
        connection.execute(OLD_LEAD, (name,))
        with pytest.raises(RivalError, match=f"{name} is led as outbox here"):
            lease.acquire(connection, name, 0, "new", 60, word="counter")


def test_an_old_version_finds_nothing_to_do(landed: str) -> None:
    """Its migrator sees its own migrations as applied, whatever else there is."""
    with psycopg.connect(landed, autocommit=True) as connection:
        mend(connection, OUTBOX, native=False)
        versions = {v for (v,) in connection.execute("SELECT version FROM harvest.migration")}
    assert versions >= set(range(1, 9))
