"""The commands of a room that is one line more in the registry, and is led without Kafka."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.ledger import lease as leases
from tests.support.counter.room import ROOM, Counter
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.reaping import Reap

PROGRAM = (sys.executable, "-m", "tests.support.programs.counting", "counter", "run")
Run = Callable[..., Result]


@pytest.fixture
def run(counter: Counter) -> Run:
    """Run one of the room's commands on this test's database."""

    def invoke(*words: str) -> Result:
        known = {"HARVEST_POSTGRES": counter.postgres_url}
        return CliRunner().invoke(group_of(ROOM), words, env=known)

    return invoke


def test_run(run: Run, reap: Reap, count: Callable[[], int]) -> None:
    """It leads and works until it is told to end, and logs how far it has come."""
    running = reap("--metrics", "0", program=PROGRAM)
    until(lambda: "acquired: epoch 1 of count/0" in running.log)
    until(lambda: re.search(r"leader, epoch 1 \| \d+/s \| [1-9]\d* counted", running.log))
    assert "/metrics, http://127.0.0.1:" in running.log
    shown = run("status").output.splitlines()
    assert shown[0] == "counter  count"
    assert re.match(r"shard 0  epoch 1, good for \d\.\d s, ", shown[1])
    assert running.stopped() == 0
    assert "SIGTERM: what is in flight settles first; once more ends it at once" in running.log
    assert "shard 0: handed over\n" in running.log
    assert running.log.endswith(f"ended: {count():,} counted\n")


def test_status(run: Run) -> None:
    """Of what nobody has led yet that is said, to people and to scripts."""
    assert run("status").output.splitlines() == [
        "counter  count",
        "leader   nobody has led yet",
        "",
        "nothing has happened yet",
    ]
    shown = json.loads(run("status", "--json", "--name", "other").output)
    assert shown.pop("name") == "other"
    assert shown == {each: [] for each in ("leases", "candidates", "tours", "events")}


@pytest.mark.parametrize("words", [["status"], ["resign"], ["set", "--number", "7"]])
def test_the_name_of_an_outbox(
    run: Run, connection: psycopg.Connection[Any], words: list[str]
) -> None:
    """A name that is led as another word is refused, and nothing is done to it."""
    leases.acquire(connection, "orders", 0, "x", 60)
    connection.commit()
    said = "orders is led as outbox, and is no counter: see `harvest outbox status --name orders`"
    refused = run(*words, "--name", "orders")
    assert (refused.exit_code, str(refused.exception)) == (1, said)
    (lease,) = leases.read(connection, "orders")
    assert not lease.resign


def test_verb(run: Run, count: Callable[[], int]) -> None:
    """A verb is a command that does it, and says what it has done."""
    assert run("set", "--number", "7").output == "count counts on from 7\n"
    assert count() == 7


def test_seen_beside_an_outbox(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """`harvest status` shows whatever else is led, a line each, also where there is no outbox."""
    leases.take(connection, "clock", 0, "host:1:ab", 60, word="counter")
    connection.commit()
    lines = harvest("status").stdout.splitlines()
    assert lines[-2].split() == ["also", "led", "as", "shard", "epoch", "holder", "lease", "tour"]
    assert lines[-1].split()[:5] == ["clock", "counter", "0", "1", "host:1:ab"]
    (other,) = json.loads(harvest("status", "--json").stdout)["others"]
    assert (other["name"], other["word"], other["epoch"]) == ("clock", "counter", 1)
    assert other["tour"] is None
    connection.execute("DROP TABLE outbox")
    connection.commit()
    alone = harvest("status").stdout.splitlines()
    assert [line.split()[0] for line in alone] == ["led", "clock"]
    assert harvest("outbox", "status").returncode == 1
