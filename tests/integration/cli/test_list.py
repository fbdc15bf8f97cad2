"""`harvest <word> list`: what is led as a word in this database, and who leads it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.ledger import lease as leases
from tests.support.counter.room import ROOM

if TYPE_CHECKING:
    from tests.support.command import Harvest


@pytest.fixture
def led(connection: psycopg.Connection[Any]) -> None:
    """Two outboxes and a count, of which one is led no more."""
    leases.acquire(connection, "orders", 0, "host:1:ab", 60)
    leases.acquire(connection, "orders", 1, "host:2:cd", 60)
    leases.acquire(connection, "bills", 0, "gone", 0.0)
    leases.take(connection, "count", 0, "host:3:ef", 60, word="counter")
    connection.commit()


@pytest.mark.usefixtures("led")
def test_outboxes(harvest: Harvest) -> None:
    """Each outbox is a line, with its shards, its leaders and their epochs; nothing else is."""
    head, *lines = harvest("outbox", "list").stdout.splitlines()
    assert head.split() == ["outbox", "shards", "leader", "epoch", "renewed"]
    assert [re.split(r"  +", line)[:4] for line in lines] == [
        ["bills", "1", "nobody", "1"],
        ["orders", "2", "host:1:ab, host:2:cd", "1, 1"],
    ]
    assert all(re.search(r"  \d+\.\d s ago$", line) for line in lines)


@pytest.mark.usefixtures("led")
def test_of_another_room(database: str) -> None:
    """Each room that leads something has the command, for what it leads."""
    shown = CliRunner().invoke(group_of(ROOM), ["list"], env={"HARVEST_POSTGRES": database})
    head, line = shown.output.splitlines()
    assert head.startswith("counter  shards  leader")
    assert line.split()[:4] == ["count", "1", "host:3:ef", "1"]


@pytest.mark.usefixtures("led")
def test_as_json(harvest: Harvest) -> None:
    """The same as JSON: of each shard the leader, null where nobody leads, and the epoch."""
    bills, orders = json.loads(harvest("outbox", "list", "--json").stdout)
    assert orders.pop("renewed_seconds") >= 0
    assert orders == {
        "name": "orders",
        "shards": 2,
        "leaders": ["host:1:ab", "host:2:cd"],
        "epochs": [1, 1],
    }
    assert bills["leaders"] == [None]


def test_none(harvest: Harvest) -> None:
    """Where there is none, that is said."""
    assert harvest("outbox", "list").stdout == "no outbox has been led in this database yet\n"
    assert json.loads(harvest("outbox", "list", "--json").stdout) == []
