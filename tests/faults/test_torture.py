"""The fault bench itself: a short run of it, and bugs that it must find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture import plan as plans
from tests.torture.bench import Bench
from tests.torture.plan import DAGSTER, Plan
from tests.torture.planted import found

WRITERS = 3


def run(plan: Plan, home: Path) -> Bench:
    """Make a bench that says nothing."""
    return Bench(replace(plan, writers=WRITERS), home, lambda _line: None)


@pytest.mark.parametrize(
    ("seed", "seconds", "delivery"),
    [
        (7, 120.0, "exactly_once"),
        pytest.param(8, 120.0, "at_least_once", marks=pytest.mark.long),
    ],
)
def test_every_promise_is_kept(tmp_path: Path, seed: int, seconds: float, delivery: str) -> None:
    """While all parts fail at random nothing is lost, invented, doubled or out of order."""
    account = run(plans.make(seed, seconds, delivery, None), tmp_path).run()
    assert account.messages > 1000
    assert account.kills
    assert all(seen.epochs > 1 for seen in account.readers.values())
    assert account.terms > 1
    assert not account.broken


@pytest.mark.long
def test_every_promise_is_kept_by_a_dagster(tmp_path: Path) -> None:
    """So it is while runs and code servers are killed, reloaded and terminated."""
    account = run(plans.make(1, 120.0, "exactly_once", None, DAGSTER), tmp_path).run()
    assert account.messages > 1000
    assert account.kills
    assert not account.broken


@pytest.mark.parametrize(
    "bug",
    [
        "no-gap-watch",
        pytest.param("fence-off", marks=pytest.mark.long),
        pytest.param("purge-early", marks=pytest.mark.long),
    ],
)
def test_a_planted_bug_is_found(tmp_path: Path, bug: str) -> None:
    """A bench that finds no fault in an engine that has one would prove nothing."""
    account = run(plans.make(1, 45.0, "exactly_once", bug), tmp_path).run()
    assert found(bug, account)
