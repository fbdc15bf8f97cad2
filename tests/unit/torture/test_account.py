"""The account of the fault bench finds each fault that messages can have, and no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harvest_dagster import Message
from tests.torture import plan as plans
from tests.torture.account import Seen, recoveries, stops_of
from tests.torture.nemesis import Struck
from tests.torture.plan import Fault, Plan
from tests.torture.proof import Proof, message
from tests.torture.tally import Tally

LEDGER = {1: 3, 2: 1}


@dataclass
class Polled:
    """A message as a consumer gives it."""

    sent: Message
    place: int = 0
    epoch: int = 0

    def topic(self) -> str:
        """Its topic."""
        return self.sent.topic

    def partition(self) -> int:
        """Its partition."""
        return self.place

    def offset(self) -> int:
        """Its offset."""
        return 0

    def key(self) -> bytes | None:
        """Its key."""
        return self.sent.key

    def value(self) -> bytes | None:
        """Its value."""
        return self.sent.value

    def headers(self) -> Any:
        """Its headers, with what a candidate adds."""
        added = [("epoch", b"%d" % self.epoch)] if self.epoch else []
        return [*(self.sent.headers or ()), *added]


def sent(tx: int, number: int, place: int, key: str | None = "k") -> Polled:
    """Make a message."""
    return Polled(message("t", key, b"v", Proof(tx, number, place, 0)))


FIRST, SECOND, THIRD = sent(1, 0, 1), sent(1, 1, 2), sent(1, 2, 3)
LAST, ROLLED_BACK, UNKNOWN = sent(2, 0, 4), sent(3, 0, 4), sent(1, 3, 4)
ALL = [FIRST, SECOND, THIRD, LAST]


def seen(messages: Sequence[Polled]) -> Seen:
    """Judge what a reader got."""
    tally = Tally()
    for each in messages:
        tally.take(each)
    return Seen.of(json.loads(json.dumps(tally.told())), LEDGER)


@pytest.mark.parametrize(
    ("messages", "once", "at_least_once"),
    [
        (ALL, {}, {}),
        (ALL[:2] + ALL[3:], {"lost": 1}, {"lost": 1}),
        ([], {"lost": 4}, {"lost": 4}),
        (
            [*ALL, ROLLED_BACK],
            {"invented": 1, "out of order": 1},
            {"invented": 1, "out of order": 1},
        ),
        ([*ALL[:3], UNKNOWN, LAST], {"invented": 1, "out of order": 1}, None),
        ([FIRST, SECOND, SECOND, THIRD, LAST], {"doubled": 1}, {}),
        ([FIRST, SECOND, FIRST, SECOND, THIRD, LAST], {"doubled": 2}, {"out of order": 1}),
        ([FIRST, THIRD, SECOND, LAST], {"out of order": 1}, {"out of order": 1}),
    ],
)
def test_faults_of_messages(
    messages: list[Polled], once: dict[str, int], at_least_once: dict[str, int] | None
) -> None:
    """Each is found, and counts as what it is under the delivery that was promised."""
    found = seen(messages)
    assert found.faults(once=True, ordered=True) == once
    if at_least_once is not None:
        assert found.faults(once=False, ordered=True) == at_least_once


@pytest.mark.parametrize("changed", [b"w", b"", None])
def test_a_value_that_was_changed(changed: bytes | None) -> None:
    """A message that did not arrive as it was made is not whole."""
    broken = Polled(LAST.sent._replace(value=changed))
    assert seen([*ALL[:3], broken]).faults(once=True, ordered=True) == {"not whole": 1}


def test_another_topic() -> None:
    """A message that went to another topic than its own is not whole."""
    strange = Polled(LAST.sent._replace(topic="other"))
    assert seen([*ALL[:3], strange]).faults(once=True, ordered=True) == {"not whole": 1}


def test_a_header_that_nobody_gave() -> None:
    """Nor is a message whose headers are not those that it was given."""
    more = (*(LAST.sent.headers or ()), ("other", b""))
    assert seen([*ALL[:3], Polled(LAST.sent._replace(headers=more))]).broken == 1


def test_a_key_in_two_partitions() -> None:
    """A key whose messages do not go to one partition has no order that Kafka keeps."""
    strayed = [*ALL[:3], replace(LAST, place=1)]
    assert seen(strayed).faults(once=False, ordered=True) == {"keys in two partitions": 1}


def test_a_deposed_leaders_message() -> None:
    """One behind a later epoch's is a fault where Kafka fences, and none in another partition."""
    epochs = [replace(each, epoch=epoch) for each, epoch in zip(ALL, (1, 2, 1, 2), strict=True)]
    assert seen(epochs).faults(once=True, ordered=True) == {"of an old epoch": 1}
    assert seen(epochs).faults(once=False, ordered=True) == {}
    assert seen(epochs).epochs == 2
    other = Polled(message("u", "k", b"v", Proof(1, 2, 3, 0)), 1, epoch=1)
    assert not seen([*epochs[:2], other, epochs[3]]).outdated


def test_messages_without_a_key() -> None:
    """They have no order, but are to be there once."""
    keyless = [sent(1, number, 0, None) for number in (2, 0, 1)]
    assert seen([*keyless, LAST]).faults(once=True, ordered=True) == {}
    assert seen([*keyless, LAST, keyless[0]]).faults(once=True, ordered=True) == {"doubled": 1}


FIRST_DELIVERIES = {
    "0": {"99": 10_900, "102": 10_400, "205": 20_600},
    "1": {"95": 9_600, "105": 14_000, "130": 13_500, "203": 20_900},
}


def struck(began: float, ended: float) -> Struck:
    """A broker that was killed."""
    return Struck(Fault(0, "kill", "kafka-1", 1), "kafka-1", "broker", began, ended)


def test_a_fault_is_got_over_when_every_partition_flows_again() -> None:
    """What was stashed before it does not count, and the slowest partition does."""
    found = recoveries([struck(10.0, 11.0), struck(20.0, 20.2)], FIRST_DELIVERIES)["kill broker"]
    assert found == {
        "count": 2,
        "lasted_median": 0.6,
        "worst": 3.5,
        "alone": 2,
        "alone_each": [3.5, 0.9],
        "alone_median": 2.2,
    }


def test_faults_that_overlap_are_not_alone() -> None:
    """How long one takes to get over is not told by what another was in the way of."""
    found = recoveries([struck(10.0, 11.0), struck(13.0, 13.1)], FIRST_DELIVERIES)["kill broker"]
    assert (found["count"], found["alone"]) == (2, 0)


def test_a_fault_that_nothing_came_after() -> None:
    """It has no time to recover, and is not counted among those that were measured."""
    assert recoveries([struck(20.4, 20.5)], FIRST_DELIVERIES) == {}


def test_stops_count_while_there_are_writers() -> None:
    """A stop that goes on after them is as long as it was until then."""
    assert stops_of({"stops": [[1.0, 3.0], [5.0, 9.0], [12.0, 14.0]]}, 6.0) == [2.0, 1.0]


def test_a_plan_is_repeated(tmp_path: Path) -> None:
    """The same seed makes the same faults, and a plan's file has the load, too."""
    plan = replace(plans.make(3, 600, "exactly_once", None), rate=50.0, writers=2)
    assert plan.faults == plans.make(3, 600, "exactly_once", None).faults
    assert plan.faults != plans.make(4, 600, "exactly_once", None).faults
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan


def test_a_plan_for_dagster() -> None:
    """Its runs and code servers are struck, and no candidate that is a program."""
    faults = plans.make(1, 600, "exactly_once", None, plans.DAGSTER).faults
    struck = {(fault.kind, fault.target) for fault in faults}
    assert {("kill", "run"), ("kill", "code server"), ("terminate", "run")} < struck
    assert ("reload", "code server") in struck
    assert not any(target.startswith(("candidate", "leader")) for _, target in struck)
