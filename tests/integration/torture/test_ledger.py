"""The fault bench's triggers see whose epoch was over when he wrote."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from harvest_dagster.election import history, lease
from harvest_dagster.election.lease import Lease
from tests.torture import ledger

CLAIM = (
    "INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)"
    " VALUES (%s, 0, %s, %s, '{}', 0)"
)


@pytest.fixture
def leases(connection: psycopg.Connection[Any]) -> list[Lease]:
    """Two terms, of which the second holds."""
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


def test_an_event_of_a_deposed_leader(
    connection: psycopg.Connection[Any], leases: list[Lease]
) -> None:
    """So is an event that only a leader may write; that it was fenced, anybody may."""
    old = leases[0]
    for kind in ("fenced", "tour_ended"):
        history.record(connection, "bench", 0, old.epoch, old.leader_id, kind, {})
    assert stale(connection) == [("event", 1, 2)]
