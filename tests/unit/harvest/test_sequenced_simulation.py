"""The rules of `sequenced` in 10,000 schedules, and each of them taken out."""

from __future__ import annotations

import pytest

from tests.support.simulated_world import faults
from tests.support.simulation import BUGS

SCHEDULES, SHARE = 10_000, 10
ENOUGH = 1000
"""In so many schedules at most each bug is found."""


@pytest.mark.parametrize("share", range(SHARE))
def test_schedules(share: int) -> None:
    """Whatever happens when, a reader sees each record, once, and those of a key in order."""
    found = {seed: said for seed in range(share, SCHEDULES, SHARE) if (said := faults(seed))}
    assert found == {}


@pytest.mark.parametrize("bug", BUGS)
def test_a_rule_that_is_taken_out(bug: str) -> None:
    """A reader of some schedule has to complain."""
    assert any(complains(seed, bug) for seed in range(ENOUGH))


def complains(seed: int, bug: str) -> bool:
    """Return whether a schedule goes wrong, or never ends."""
    try:
        return bool(faults(seed, bug))
    except AssertionError:
        return True
