"""The commands that are made of a room's description, of one that is led without Kafka."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from harvest_dagster.ledger import lease as leases
from harvest_dagster.work import room as rooms
from tests.support.programs.ticking import ROOM, ticking

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.reaping import Reap, Until

PROGRAM = (sys.executable, "-m", "tests.support.programs.ticking")
Run = Callable[..., Result]


@pytest.fixture
def run(database: str) -> Run:
    """Run one of the commands on this test's database."""

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(ticking, words, env={"HARVEST_POSTGRES": database})

    return invoke


def test_run(run: Run, reap: Reap, until: Until) -> None:
    """It leads and works until it is told to end, and logs how far it has come."""
    running = reap("run", "--metrics", "0", "--shards", "2", program=PROGRAM)
    until(lambda: "acquired: epoch 1 of clock/1" in running.log)
    until(lambda: re.search(r"leader of shards 0, 1 \| \d+/s \| [1-9]", running.log))
    assert "/metrics, http://127.0.0.1:" in running.log
    shown = run("status").output.splitlines()
    assert shown[0] == "ticking  clock"
    assert re.match(r"shard 1  epoch 1, good for \d\.\d s, ", shown[2])
    assert running.stopped() == 0
    assert "SIGTERM: what is in flight settles first; once more ends it at once" in running.log
    assert "shard 0: handed over\n" in running.log
    assert re.search(r"ended: [\d,]+ ticks, 0 shards at work\n$", running.log)


def test_status(run: Run) -> None:
    """Of what nobody has led yet that is said, to people and to scripts."""
    assert run("status").output.splitlines() == [
        "ticking  clock",
        "leader   nobody has led yet",
        "",
        "nothing has happened yet",
    ]
    shown = json.loads(run("status", "--json", "--name", "other").output)
    assert shown == {"name": "other", "leases": [], "tours": [], "events": []}


def test_verb(run: Run, connection: psycopg.Connection[Any]) -> None:
    """A verb is a command with an option for each of its fields, and says what it has done."""
    leases.acquire(connection, "clock", 0, "host:1:ab", 60)
    connection.commit()
    done = run("ask-to-go", "--shard", "0", "--often")
    assert re.fullmatch(r"asked clock/0 often: True\nby \w+\n", done.output)
    (row,) = leases.read(connection)
    assert row.resign


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask-to-go",), "Missing option '--shard'"),
        (("ask-to-go", "--shard", "x"), "--shard: Input should be a valid integer"),
        (("status", "--shards", "many"), "--shards: Input should be a valid integer"),
    ],
)
def test_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    """What a field does not take is refused, by the option's name."""
    refused = run(*words)
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_help(run: Run) -> None:
    """Options say what the fields of the description say."""
    shown = run("run", "--help").output
    assert "--name TEXT" in shown
    assert "What it is called. [default: clock]" in shown
    assert "--stop-seconds" in shown
    shown = run("--help").output
    assert "Ask the leader to resign." in shown
    assert all(f"\n  {name} " in shown for name in ("resign", "run", "status"))


def test_seen_beside_an_outbox(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """`harvest status` shows whatever else is led, a line each, also where there is no outbox."""
    leases.acquire(connection, "clock", 0, "host:1:ab", 60)
    connection.commit()
    lines = harvest("status").stdout.splitlines()
    assert lines[-2].split() == ["also", "led", "shard", "epoch", "holder", "lease", "tour"]
    assert lines[-1].split()[:4] == ["clock", "0", "1", "host:1:ab"]
    (other,) = json.loads(harvest("status", "--json").stdout)["others"]
    assert (other["name"], other["epoch"], other["tour"]) == ("clock", 1, None)
    connection.execute("DROP TABLE outbox")
    connection.commit()
    alone = harvest("status").stdout.splitlines()
    assert [line.split()[0] for line in alone] == ["led", "clock"]
    assert harvest("outbox", "status").returncode == 1


def test_every_room_is_asked() -> None:
    """Each description is found, and what can happen is of all of them."""
    assert "outbox" in [room.word for room in rooms.rooms()]
    assert {"acquired", "parked"} <= rooms.kinds().keys()
    assert ROOM.commands == ""
