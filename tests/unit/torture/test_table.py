"""The accounts of several runs are told in one table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.support.torture import KEPT, readers
from tests.torture.table import faults, runs

FAULT = {"count": 3, "lasted_median": 1.0, "worst": 9.5, "alone": 2, "alone_each": [2.5, 1.5]}
MORE = {"count": 1, "lasted_median": 1.0, "worst": 7.0, "alone": 1, "alone_each": [7.0]}
ONE = replace(
    KEPT, seed=1, kills={"leader": 2, "broker": 1}, struck=4, faults={"kill leader": FAULT}
)
TWO = replace(
    KEPT,
    faults={"kill leader": MORE},
    seed=2,
    kills={"leader": 1},
    readers=readers(lost=3),
    drained_seconds=None,
)


def lines() -> list[list[str]]:
    """Write the tables, and take them apart."""
    told: list[Any] = [json.loads(json.dumps(account.as_dict())) for account in (TWO, ONE)]
    written = [*runs(told), *faults(told)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in written]


def column(name: str) -> list[str]:
    """What stands under a title: each seed, and all."""
    head, _, *rows = lines()
    return [row[head.index(name)] for row in rows[:3]]


def test_runs_and_their_total() -> None:
    """Each seed has a line, in their order, and what can be added is."""
    assert column("seed") == ["1", "2", "all"]
    assert column("kill leader") == ["2", "1", "3"]
    assert column("kill broker") == ["1", "0", "1"]
    assert column("kill -9") == ["3", "1", "4"]
    assert column("messages") == ["1,000", "1,000", "2,000"]


def test_what_was_broken() -> None:
    """It is told for the seed, and for all."""
    assert column("lost") == ["0", "3", "3"]
    assert column("drained, s") == ["1.5", "no", "no"]
    assert column("broken") == ["0", "2", "2"]


def test_recoveries_of_all_runs() -> None:
    """A kind of fault has one line."""
    assert ["kill leader", "4", "9.5", "3", "2.5"] in lines()
