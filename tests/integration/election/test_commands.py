"""`harvest lease` and `harvest history`, on a lease that candidates hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from harvest_dagster.cli import main
from harvest_dagster.ledger import events, lease
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.candidates import Start

Free = psycopg.Connection[Any]
Run = Callable[..., Result]


@pytest.fixture
def run(database: str) -> Run:
    """Run one of the commands on this test's database."""

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(main, words, env={"HARVEST_POSTGRES": database})

    return invoke


def test_a_lease_is_shown(run: Run, free: Free) -> None:
    """Show tells holder, epoch and what is left; before anyone led, it says so."""
    assert run("lease", "show").output == "nobody has led outbox yet\n"
    lease.acquire(free, "outbox", 0, "host:1:ab", 60)
    shown = run("lease", "show").output
    assert "host:1:ab" in shown
    assert "good for" in shown
    (row,) = json.loads(run("lease", "show", "--json").output)
    assert (row["epoch"], row["expired"]) == (1, False)


@pytest.mark.parametrize("words", [("lease", "show"), ("lease", "history"), ("history",)])
def test_of_another_outbox(run: Run, free: Free, words: tuple[str, ...]) -> None:
    """The outbox is told as to all other commands."""
    lease.acquire(free, "letters", 0, "host:1:ab", 60)
    assert "host:1:ab" in run(*words, "--outbox", "letters").output
    assert "host:1:ab" not in run(*words).output


def test_an_ended_lease_is_shown_as_such(run: Run, free: Free) -> None:
    """Show tells that a lease has expired."""
    lease.acquire(free, "outbox", 0, "x", 60)
    lease.release(free, "outbox", 0, "x", "revoked", {})
    assert "expired 0 s ago" in run("lease", "show").output


def test_leaders_have_a_history_of_their_own(run: Run, free: Free) -> None:
    """`lease history` tells of terms alone, `history` of everything."""
    lease.acquire(free, "outbox", 0, "x", 60)
    events.record(free, "outbox", 0, "parked", {"id": 7, "reason": "too large"}, epoch=1)
    assert "parked" not in run("lease", "history").output
    assert "id 7, reason too large" in run("history").output
    (event,) = json.loads(run("history", "--json", "--kind", "parked", "--since", "1h").output)
    assert event["detail"] == {"id": 7, "reason": "too large"}


def test_nothing_fits(run: Run, free: Free) -> None:
    """Where nothing fits what was asked for, that is told, and not that nothing has happened."""
    assert run("history").output == "nothing has happened yet\n"
    lease.acquire(free, "outbox", 0, "x", 60)
    narrow = ("--kind", "fenced", "--kind", "parked", "--since", "1.5h")
    said = "no events of outbox match --kind fenced --kind parked --since 1.5h\n"
    assert run("history", *narrow).output == said


@pytest.mark.parametrize("words", [("lease", "show"), ("lease", "history"), ("history",)])
def test_a_name_that_is_none(run: Run, free: Free, words: tuple[str, ...]) -> None:
    """A name that is mistyped is an error, with those that there are, once there are any."""
    named = (*words, "--name", "shpo")
    assert run(*named).exit_code == 0
    for name in ("shop", "bank"):
        lease.acquire(free, name, 0, "x", 60)
    lease.take(free, "count", 0, "x", 60, word="counter")
    said = "no harvest named shpo has led yet; there are: bank, shop"
    assert run(*named).output == f"harvest: {said}\n"


@pytest.mark.parametrize("words", [("lease", "show"), ("lease", "history"), ("history",)])
def test_of_whatever_else_is_led(run: Run, free: Free, words: tuple[str, ...]) -> None:
    """By its name, the lease and the history of whatever is led are shown."""
    lease.acquire(free, "shop", 0, "x", 60)
    lease.take(free, "count", 0, "host:1:ab", 60, word="counter")
    assert "host:1:ab" in run(*words, "--name", "count").output


def test_a_duration_is_checked(run: Run) -> None:
    """A duration that can't be read is refused with examples."""
    result = run("history", "--since", "soon")
    assert result.exit_code == 2
    assert "write 30s, 5m, 1h or 7d" in result.output


def test_resign_tells_who_leads_now(run: Run, start: Start) -> None:
    """A sole candidate that resigns leads again, and the command says that there is no other."""
    only = start()
    until(only.leads)
    result = run("lease", "resign")
    assert result.exit_code == 0, result.output
    assert f"shard 0: {only.candidate.holder} leads again, epoch 2: no other" in result.output


def test_resign_of_what_nobody_led(run: Run) -> None:
    """Where nobody has led there is nobody to ask."""
    result = run("lease", "resign", "--shard", "3")
    assert "nobody has led shard 3 of outbox yet" in result.output
