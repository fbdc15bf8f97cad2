"""What a code server can't get over, another one does: a second Dagster, or the next start."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dagster_dev import DagsterDev, dagster_dev
from tests.support.place import Place
from tests.support.project import Project, beside
from tests.support.shop import (
    GAP_SECONDS,
    GOOD_TOUR,
    Account,
    Shop,
    longest_gap,
    one_leader_at_a_time,
)
from tests.support.ui import until

pytestmark = pytest.mark.long


def place_of(project: Project) -> Place:
    """The outbox, and a topic."""
    return Place(project.postgres, dict(project.servers.kafka_config))


def kill_all(running: DagsterDev) -> None:
    """Kill UI, daemon, code server and runs, as when their machine dies."""
    for process in running.processes():
        process.kill()


def test_another_dagster_takes_over(project: Project, tmp_path: Path) -> None:
    """Of two Dagsters one leads and one stands by; when all of the one dies, the other leads."""
    place = place_of(project)
    with (
        dagster_dev(project) as first,
        beside(project, tmp_path) as other,
        dagster_dev(other) as second,
        Account(place) as account,
    ):
        one, two = Shop(first, place), Shop(second, place)
        until(one.publishes, what="a tour publishes")
        until(lambda: "standing by" in two.told(), what="the other stands by")
        before = one.tour()
        assert before is not None
        kill_all(first)
        gap = longest_gap(account.reader, lambda: two.goes_on(before))
        until(lambda: GOOD_TOUR in two.told(), what="the other's tick tells of its tour")
        account.settle()
        assert one_leader_at_a_time(two)
    place.drop_topic(place.topic)
    logging.getLogger(__name__).info("another took over: nothing came for %.1f s", gap)
    assert gap < GAP_SECONDS


def kill_daemon(running: DagsterDev) -> None:
    """Kill the daemon, without which no sensor ticks; `dagster dev` then ends by itself."""
    running.process("dagster._daemon").kill()
    assert running.command.wait(120) != 0


@pytest.mark.parametrize("kill", [kill_daemon, kill_all])
def test_the_next_start_goes_on(project: Project, kill: Callable[[DagsterDev], None]) -> None:
    """Whatever dies of a lone Dagster, the next start goes on from where it was."""
    place = place_of(project)
    with Account(place) as account:
        with dagster_dev(project) as running:
            shop = Shop(running, place)
            until(shop.publishes, what="a tour publishes")
            before = shop.tour()
            assert before is not None
            kill(running)
        with dagster_dev(project) as again:
            shop = Shop(again, place)
            gap = longest_gap(account.reader, lambda: shop.goes_on(before))
            account.settle()
    logging.getLogger(__name__).info("%s, once it is up: %.1f s", kill.__name__, gap)
    assert one_leader_at_a_time(shop)
    place.drop_topic(place.topic)
