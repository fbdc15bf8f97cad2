"""Each promise that a run breaks is told, and is the command's exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.torture import KEPT, SEEN, readers
from tests.torture.__main__ import main
from tests.torture.account import Account
from tests.torture.plan import Plan

UNREAD = ("lost", "invented", "doubled", "repeated", "disordered", "broken", "strayed", "outdated")


BROKEN: list[dict[str, Any]] = [
    {"vanished": 1},
    {"risen": 1},
    {"stale_writes": 1},
    {"overlap_written_seconds": 0.001},
    {"overlap_trusted_seconds": 0.001},
    {"gave_up": ["candidate-1: exit code 1"]},
    {"died": ["writer-1: exit code 1"]},
    {"unclean": ["candidate-1 at the end"]},
    {"drained_seconds": None},
    {"outcomes": {}},
    {"outcomes": {"undone": 10, "unknown": 5}},
    *({"readers": readers(**{fault: 1})} for fault in UNREAD),
]


def judged(account: Account, folder: Path) -> int:
    """Have the command judge a run of which this is the account; tell its exit code."""

    def run(plan: Plan, home: Path) -> Account:
        assert (plan.seed, home) == (3, folder)
        return account

    words = ["--seed", "3", "--home", str(folder), "--plan", str(folder / "plan.json")]
    return main([*words, "--json", str(folder / "account.json")], run)


def test_all_was_kept(tmp_path: Path) -> None:
    """A run that broke nothing ends with 0."""
    assert not KEPT.broken
    assert judged(KEPT, tmp_path) == 0


@pytest.mark.parametrize("changes", BROKEN, ids="-".join)
def test_a_broken_promise(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Whatever was broken is told, and the exit code is 1."""
    account = replace(KEPT, **changes)
    assert len(account.broken) == 1
    assert judged(account, tmp_path) == 1


@pytest.mark.parametrize("fault", ["doubled", "repeated", "disordered", "outdated"])
def test_who_reads_all_sees_what_was_aborted(fault: str) -> None:
    """That is no broken promise in `exactly_once`."""
    changes: dict[str, Any] = {fault: 1}
    seen = {"read_uncommitted after": replace(SEEN, **changes)}
    assert not replace(KEPT, readers=KEPT.readers | seen).broken
