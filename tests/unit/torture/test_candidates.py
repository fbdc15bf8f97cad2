"""The bench knows how a candidate ended: by its hand, by itself, well or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.place import Place
from tests.support.waiting import until
from tests.torture.candidates import Candidates

NOWHERE = {"base_kafka": {"bootstrap.servers": "127.0.0.1:1"}, "postgres": "host=127.0.0.1 port=1"}
WRONG: dict[str, Any] = {}


def started(config: dict[str, Any], logs: Path) -> Candidates:
    """Start a candidate; nobody asks where it would harvest."""
    candidates = Candidates(Place.__new__(Place), {"one": config}, None, logs)
    candidates.start_all()
    return candidates


def test_a_kill(tmp_path: Path) -> None:
    """What is alive is killed, once, and has not given up."""
    candidates = started(NOWHERE, tmp_path)
    assert candidates.kill("one")
    assert not candidates.kill("one")
    assert not candidates.gave_up


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_crash_before_it(tmp_path: Path, how: str) -> None:
    """Whoever ended by himself was not killed, and has not stopped well."""
    candidates = started(WRONG, tmp_path)
    until(lambda: "Error" in (tmp_path / "one.log").read_text(), what="it fails")
    until(lambda: candidates.ended("one"), what="it ends")
    assert not getattr(candidates, how)("one")
    assert candidates.gave_up == ["one: exit code 1"]
    assert candidates.stop_all() == []


def test_who_has_to_be_looked_for(tmp_path: Path) -> None:
    """A crash is seen by whoever looks, and another is started in its place."""
    candidates = started(WRONG, tmp_path)
    until(lambda: candidates.ended("one"), what="it ends")
    candidates.look()
    assert candidates.gave_up == ["one: exit code 1"]
    assert not candidates.ended("one")
    candidates.kill_all()


def test_a_stop(tmp_path: Path) -> None:
    """Whoever is asked to end must end well, and with 0, even if it has only just been started."""
    assert started(NOWHERE, tmp_path).stop("one")
