"""What is judged red, and what green."""

from __future__ import annotations

from typing import Any

import pytest

from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import InFlight, ParkedCount
from harvest_dagster.work.described import blind
from harvest_dagster.work.room import Verdict
from tests.support.statuses import lease, status, tour, verdicts

WAITS: dict[str, Any] = {"backlog": Backlog(12, 40.0, exact=True)}


def found(check: str, shards: int = 1, **of: Any) -> Verdict:
    """Judge, and pick one verdict."""
    return next(v for v in verdicts(status(**of), shards) if v.check == check)


def test_all_is_well() -> None:
    """A harvest that does well has nothing but green checks."""
    assert all(verdict.passed for verdict in verdicts(status(), 1))


@pytest.mark.parametrize(
    ("check", "of", "says"),
    [
        ("one_leader", {"leases": []}, "nobody leads shard 0"),
        ("one_leader", {"leases": [lease(expired=True)]}, "nobody leads shard 0"),
        (
            "young",
            {"backlog": Backlog(5, 61.0, exact=True)},
            "5 records wait, the oldest for 1 min",
        ),
        ("no_stall", {**WAITS, "tours": []}, "no tour runs for 1 of 1 shard"),
        ("no_stall", {**WAITS, "tours": [tour(seen_seconds=9.0)]}, "no tour runs"),
        ("no_stall", {**WAITS, "tours": [tour(ended=True)]}, "no tour runs"),
        ("no_stall", {"in_flight": InFlight(1, 10, 31.0)}, "10 records are in flight, the oldest"),
        (
            "topics_open",
            {"tours": [tour(held={"t": "no such topic"})]},
            "for t wait: no such topic",
        ),
        ("nothing_parked", {"parked": ParkedCount(2, 1, {"too large": 2})}, "2: too large"),
    ],
)
def test_red(check: str, of: dict[str, Any], says: str) -> None:
    """Each check turns red for its own reason, and says it."""
    verdict = found(check, **of)
    assert not verdict.passed
    assert says in verdict.says
    assert [v.check for v in verdicts(status(**of), 1) if not v.passed] == [check]


def test_each_shard_needs_its_leader() -> None:
    """With shards, those without a leader are named."""
    assert "shard 1, 2" in found("one_leader", shards=3).says


def test_a_harvest_without_dagster_does_not_stall() -> None:
    """`harvest reap` tells no tour of itself; its claims tell that it works."""
    verdict = found("no_stall", **WAITS, tours=[], in_flight=InFlight(1, 10, 2.0))
    assert verdict.passed


def test_a_dead_tour_holds_no_topic() -> None:
    """What a tour that is gone said of topics does not count."""
    assert found("topics_open", tours=[tour(held={"t": "gone"}, ended=True)]).passed


def test_a_tour_that_publishes_nothing_stalls() -> None:
    """A tour that lives and gets nothing out is no better than none."""
    verdict = next(v for v in verdicts(status(**WAITS), 1, 31.0) if v.check == "no_stall")
    assert not verdict.passed
    assert "nothing was published for 31.0 s" in verdict.says


@pytest.mark.parametrize(
    ("still", "of"),
    [
        pytest.param(29.0, {}, id="a pause"),
        pytest.param(99.0, {"parked": ParkedCount(1, 1, {"r": 1})}, id="behind a parked record"),
        pytest.param(99.0, {"tours": [tour(held={"t": "gone"})]}, id="for a topic"),
    ],
)
def test_what_waits_for_a_reason_does_not_stall(still: float, of: dict[str, Any]) -> None:
    """What is told by another check, or is short, turns this one not red."""
    found = verdicts(status(**WAITS, **of), 1, still)
    assert next(v for v in found if v.check == "no_stall").passed


def test_what_can_not_be_seen_is_not_well() -> None:
    """Where the tables can't be read, each check is red, with the reason."""
    red = [*blind(ROOM, "there is no table outbox")]
    assert {v.check for v in red} == {v.check for v in verdicts(status(), 1)} | {"table_healthy"}
    assert not any(v.passed for v in red)
    assert all("no table outbox" in v.says for v in red)
