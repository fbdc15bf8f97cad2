"""What the nemesis did is judged by what else was wrong at the time."""

from __future__ import annotations

import pytest

from tests.torture.nemesis import Struck, unclean
from tests.torture.plan import Fault


def struck(target: str, began: float, ended: float, *, badly: bool = False) -> Struck:
    """Something that was restarted."""
    fault = Fault(0, "restart", target)
    return Struck(fault, target, "standby", began, ended, unclean=badly)


RESTART = struck("candidate-1", 100.0, 101.0, badly=True)


@pytest.mark.parametrize(
    "other",
    [
        struck("kafka-1", 10.0, 12.0),
        struck("kafka-1", 101.0, 102.0),
        struck("candidate-2", 10.0, 10.5, badly=False),
    ],
)
def test_a_candidate_that_did_not_end_well(other: Struck) -> None:
    """It has no excuse in what was over long before, or came after."""
    assert unclean([other, RESTART]) == ["candidate-1 at its restart"]


@pytest.mark.parametrize("began", [60.0, 85.0, 100.5])
def test_one_that_had_an_excuse(began: float) -> None:
    """It may be cut off while it ends, if something else was wrong, or just before."""
    assert unclean([struck("postgres", began, began + 25), RESTART]) == []


def test_servers_are_no_candidates() -> None:
    """How a broker ends is not the harvest's affair."""
    assert unclean([struck("kafka-1", 1.0, 2.0, badly=True)]) == []
