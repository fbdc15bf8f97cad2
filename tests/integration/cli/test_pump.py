from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.databases import Stashed


def test_counts(harvest: Harvest, stashed: Stashed) -> None:
    """Pump stashes as many messages as it is told, and says so."""
    run = harvest("pump", "--records", "2500")
    assert run.returncode == 0
    assert run.stdout.startswith("2,500 of 2,500 messages stashed, ")
    assert run.stdout.endswith("/s into outbox\n")
    assert len(stashed()) == 2500


def test_values_are_numbered(harvest: Harvest, stashed: Stashed) -> None:
    """Each value begins with its message's number, in order, and has the size that is told."""
    harvest("pump", "--records", "50", "--size", "9", "--batch", "7", "--topic", "load")
    messages = stashed()
    assert [int(message.value or b"") for message in messages] == list(range(50))
    assert {(message.topic, len(message.value or b"")) for message in messages} == {("load", 9)}


def test_keys(harvest: Harvest, stashed: Stashed) -> None:
    """Keys are as many as it is told, each as often as the others."""
    harvest("pump", "--records", "30", "--keys", "3")
    assert Counter(m.key for m in stashed()) == {b"0": 10, b"1": 10, b"2": 10}


@pytest.mark.parametrize("options", [(), ("--batch", "3"), ("--batch", "1000")])
def test_rate(harvest: Harvest, stashed: Stashed, options: tuple[str, ...]) -> None:
    """At a rate, all messages get in just as well."""
    run = harvest("pump", "--records", "20", "--rate", "1000", *options)
    assert (run.returncode, len(stashed())) == (0, 20)


def test_progress(harvest: Harvest) -> None:
    """What takes more than a second shows how far it is, on stderr and not among the output."""
    run = harvest("pump", "--records", "30", "--rate", "20", "--batch", "1")
    assert " of 30 messages stashed, " in run.stderr
    assert run.stdout.startswith("30 of 30 messages stashed, ")


def test_nothing(harvest: Harvest, stashed: Stashed) -> None:
    """Of no messages none are stashed."""
    assert harvest("pump", "--records", "0").returncode == 0
    assert stashed() == []


def test_goharvest(harvest: Harvest, stashed: Stashed) -> None:
    """Goharvest's table is loaded just as well."""
    harvest("pump", "--records", "10", "--outbox", "goharvest_outbox")
    assert len(stashed("goharvest_outbox")) == 10


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--topic", "a b"), 1, "topic: 'a b' is not legal"),
        (("--size", "2000000"), 1, "which makes the message 2,000,081"),
        (("--records", "-1"), 2, "--records"),
        (("--keys", "0"), 2, "--keys"),
        (("--rate", "0"), 2, "--rate"),
        (("--batch", "0"), 2, "--batch"),
    ],
)
def test_refused(
    harvest: Harvest, stashed: Stashed, options: tuple[str, ...], code: int, said: str
) -> None:
    """What can't be stashed, or makes no sense, is refused, and nothing is stashed."""
    failed = harvest("pump", "--records", "5", *options)
    assert (failed.returncode, said in failed.stderr) == (code, True)
    assert stashed() == []
