"""The fault bench's triggers see whose epoch was over when he wrote."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from harvest_dagster.ledger import events, lease
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName
from tests.torture import ledger

CLAIM = (
    "INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)"
    " VALUES (%s, 0, %s, %s, '{}', 0)"
)


@pytest.fixture
def leases(connection: psycopg.Connection[Any]) -> list[Lease]:
    """Two terms, of which the second holds."""
    create(connection, TableName("outbox"), Kind.NATIVE)
    ledger.create(connection, range(1, 2))
    return [lease.acquire(connection, "bench", 0, holder, 60) for holder in ("old", "new")]


def stale(connection: psycopg.Connection[Any]) -> list[Any]:
    """What the triggers have seen."""
    return connection.execute("SELECT what, epoch, held FROM torture.stale").fetchall()


def test_a_claim_of_a_deposed_leader(
    connection: psycopg.Connection[Any], leases: list[Lease]
) -> None:
    """A claim under the epoch that holds is none, one under an older epoch is."""
    old, new = leases
    connection.execute(CLAIM, ("bench", new.epoch, 1))
    assert not stale(connection)
    connection.execute(CLAIM, ("bench", old.epoch, 2))
    assert stale(connection) == [("claim", 1, 2)]


def record(connection: psycopg.Connection[Any], lease: Lease, kind: str) -> None:
    """Write an event down as a leader's, whether it leads or not."""
    events.record(connection, "bench", 0, kind, {}, epoch=lease.epoch, leader_id=lease.leader_id)


def test_an_event_of_a_deposed_leader(
    connection: psycopg.Connection[Any], leases: list[Lease]
) -> None:
    """So is an event that only a leader may write; that it was fenced, anybody may."""
    old = leases[0]
    for kind in ("fenced", "tour_ended"):
        record(connection, old, kind)
    assert stale(connection) == [("event", 1, 2)]


@pytest.mark.parametrize("told", [1, 2, None])
@pytest.mark.parametrize("table", ["harvest.claim", "outbox"])
def test_a_purge_of_a_deposed_leader(
    connection: psycopg.Connection[Any], leases: list[Lease], table: str, told: int | None
) -> None:
    """Whoever says that it deletes under an epoch that is over is seen, if it deletes anything."""
    connection.execute(CLAIM, ("bench", leases[1].epoch, 1))
    connection.execute(
        "INSERT INTO outbox (kafka_topic, kafka_key, kafka_value) VALUES ('t', 'k', 'v')"
    )
    connection.execute("SELECT set_config('torture.epoch', %s, true)", (told and str(told),))
    connection.execute(f"DELETE FROM {table} WHERE false")
    assert not stale(connection)
    connection.execute(f"DELETE FROM {table}")
    assert [found[1:] for found in stale(connection)] == ([(1, 2)] if told == 1 else [])


def test_a_leader_that_writes_beside_another(
    connection: psycopg.Connection[Any], leases: list[Lease]
) -> None:
    """What an old leader still writes counts in seconds; that it was fenced does not."""
    old, new = leases
    record(connection, new, "tour_started")
    record(connection, old, "fenced")
    assert ledger.overlap(connection) == 0
    record(connection, old, "tour_ended")
    assert 0 < ledger.overlap(connection) < 10
