"""Two `harvest reap` side by side under load, the leader of which is killed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.account import lanes
from tests.support.candidates import best_of_three
from tests.support.faults import settle
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.load import Load
    from tests.support.place import Place
    from tests.support.reaping import Reap, Reaping

BOUND_SECONDS = 7.0
"""Kafka's session, and one second."""


@pytest.fixture
def reaper_yaml(place: Place, tmp_path: Path) -> str:
    """The file that all are started from."""
    harvest = {
        "harvestName": place.name,
        "baseKafkaConfig": place.kafka,
        "leaderTopic": f"{place.name}.neli",
        "dataSource": place.postgres,
        "delivery": "exactly_once",
    }
    file = tmp_path / "reaper.yaml"
    file.write_text(yaml.safe_dump({"harvest": harvest, "logging": {"level": "Info"}}))
    return str(file)


class Pair:
    """One that leads, and one that stands by."""

    def __init__(self, place: Place, reap: Reap, file: str) -> None:
        self._place, self._reap, self._file = place, reap, file
        self._running: dict[int, Reaping] = {}

    def kill_the_leader(self) -> float:
        """Kill it with -9; tell how long it took until the other led."""
        self._stand()
        epoch = self._epoch()
        killed_at = time.monotonic()
        self._running.pop(self._leader()).process.kill()
        until(lambda: self._epoch() > epoch)
        return time.monotonic() - killed_at

    def publishes(self) -> None:
        """Wait until the reader gets something new."""
        reader = self._place.reader
        assert reader
        before = len(reader.found)
        until(lambda: len(reader.found) > before)

    def _stand(self) -> None:
        """See to it that one leads, at work, and that the other has joined."""
        while len(self._running) < 2:
            started = self._reap("-f", self._file)
            self._running[started.process.pid] = started
        until(lambda: self._members() == 2)
        until(lambda: self._leader() in self._running)
        self.publishes()

    def _members(self) -> int:
        group = self._place.name
        found = self._place.admin.describe_consumer_groups([group])[group].result()
        return len(found.members)

    def _leader(self) -> int:
        holders = self._place.rows("SELECT holder FROM harvest.lease")
        return int(holders[0][0].split(":")[1]) if holders else 0

    def _epoch(self) -> int:
        return max((event.epoch or 0 for event in self._place.events("acquired")), default=0)


def account(place: Place) -> dict[str, int]:
    """Count what the reader that read all along had to complain of."""
    assert place.reader
    given, found = lanes(place.stashed), place.reader.found
    values = {message.value for message in found}
    return {
        "missing": len({message.value for message in place.stashed} - values),
        "doubled": len(found) - len(values),
        "out of order": sum(got != given[lane] for lane, got in lanes(found).items()),
    }


def test_a_killed_reap_is_replaced(place: Place, load: Load, reap: Reap, reaper_yaml: str) -> None:
    """The other leads within the session and a second, and a reader notices nothing else.

    The time is the best of three at most; the account is of all that were killed.
    """
    pair = Pair(place, reap, reaper_yaml)
    seconds = best_of_three(pair.kill_the_leader, BOUND_SECONDS)
    pair.publishes()
    load.stop()
    settle(place, "exactly_once")
    found = account(place)
    print(f"taken over {seconds:.2f} s after kill -9 under load; {found}")  # noqa: T201 - a measurement
    assert seconds < BOUND_SECONDS
    assert found == {"missing": 0, "doubled": 0, "out of order": 0}
