"""How PostgreSQL runs the statements that run all the time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.table_statements import Sharding, Statements, statements_for
from harvest_dagster.postgres.names import TableName
from tests.support.account import judge, read
from tests.support.remains import claim
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

RECORDS = 50_000
ROWS = """
    INSERT INTO outbox (kafka_topic, kafka_key, kafka_value)
    SELECT 't', 'k', repeat('x', 100)::bytea FROM generate_series(1, %s)
"""
TERM = {"name": "", "shard": 0, "epoch": 1, "leader_id": "0" * 32, "limit": 5000, "bytes": 10**7}
PARAMETERS: dict[str, dict[str, Any]] = {
    "head": {"after": 20_000},
    "sweep": {"after": 10_000, "head": 40_000},
    "gaps": {"lows": [5, 70, 30_000], "highs": [6, 90, 30_002]},
    "purge": {"batch": 3},
    "purge_records": {"ids": [1, 2, 3, 40_000], "batches": [1]},
    "park": {"id": 5, "topic": "t", "key": "k", "reason": "r", "holds_key": True},
}


@pytest.fixture(params=["never analysed", "analysed"])
def full(place: Place, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """Give an outbox of many records, some of them claimed."""
    lease = place.lease()
    with connect(place.config(), "plans") as connection:
        connection.execute(ROWS, (RECORDS,))
        for batch in range(1, 4):
            claim(place, lease, batch, batch * 5000 - 4999, batch * 5000)
        if request.param == "analysed":
            connection.execute("ANALYZE outbox")
        TERM["name"] = place.name
        yield connection


def statement(connection: psycopg.Connection[Any], name: str) -> bytes:
    """Make a statement for the table."""
    made: Statements = statements_for(
        connection, TableName("outbox"), Sharding(), mark_rows=False, retain=False
    )
    found: bytes = getattr(made, name)
    return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk through a plan."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def explained(connection: psycopg.Connection[Any], name: str) -> list[dict[str, Any]]:
    """Tell the nodes of a statement's plan."""
    cursor = psycopg.ClientCursor(connection)
    query = b"EXPLAIN (FORMAT JSON) " + statement(connection, name)
    cursor.execute(query, {**TERM, **PARAMETERS[name]})
    ((found,),) = cursor.fetchall()
    plan = json.loads(found) if isinstance(found, str) else found
    return list(nodes(plan[0]["Plan"]))


@pytest.mark.parametrize("name", PARAMETERS)
def test_by_the_primary_key(full: psycopg.Connection[Any], name: str) -> None:
    """The records are found by the primary key, never by reading the table through."""
    found = explained(full, name)
    touched = {node["Node Type"] for node in found if node.get("Relation Name") == "outbox"}
    assert touched - {"ModifyTable"} == {"Index Scan"}
    assert {node["Index Name"] for node in found if node.get("Alias") == "outbox"} <= {
        "outbox_pkey"
    }


@pytest.mark.parametrize("name", ["head", "sweep"])
def test_no_sort(full: psycopg.Connection[Any], name: str) -> None:
    """Records come in the order of the index: nothing is sorted."""
    assert not [node for node in explained(full, name) if "Sort" in node["Node Type"]]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_no_scan_of_the_table(place: Place, start_tour: StartTour, delivery: str) -> None:
    """A whole harvest never reads the table through, however its plans are made and kept."""
    place.put(5000)
    before = scans(place)
    limits = {"mark_query_records": 100, "max_in_flight_records": 1000}
    running = start_tour(place.config(delivery=delivery, limits=limits), place.lease())
    until(lambda: running.tour.totals.purged == 5000)
    assert running.end() is None
    assert scans(place) == before
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def scans(place: Place) -> int:
    """How often the table was read through."""
    query = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'outbox'"
    return int(place.rows(query)[0][0])
