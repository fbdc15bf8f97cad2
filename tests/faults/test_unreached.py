"""Kafka is gone: whoever looks is told so, wherever he looks, until it is back."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from click.testing import CliRunner

from harvest_dagster import embedded
from harvest_dagster.cli import main
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.ledger import candidates
from harvest_dagster.work.described import judged
from tests.support.faults import processes
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from harvest_dagster.embedded import Servers
    from tests.support.faults import NewPlace
    from tests.support.place import Place
    from tests.support.running import StartHarvest
SAID = "Kafka can't be reached at bootstrap.servers="


def troubled(place: Place) -> list[str]:
    """Return what whoever stands says of its troubles."""
    with place.connect() as connection:
        rows = candidates.read(connection, place.name)
    return ["; ".join(row.troubles) for row in rows]


def leads(place: Place) -> tuple[bool, str]:
    """Return what the check of the leader finds, in a process that has nothing but PostgreSQL."""
    with place.connect() as connection:
        status = ROOM.look(connection, led := Harvesting(place.config()))
    found = next(one for one in judged(ROOM, led, status) if one.check == "one_leader")
    return found.passed, found.says


def test_kafka_is_gone(
    own_servers: Callable[..., Servers], new_place: NewPlace, start_harvest: StartHarvest
) -> None:
    """The leader and who stands by say that Kafka can't be reached, and stop when it can."""
    servers = own_servers()
    place = new_place(servers, "gone")
    both = [start_harvest(place.config(label=f"host-{number}")).harvest for number in range(2)]
    until(lambda: any(harvest.is_leader() for harvest in both), 60)
    until(lambda: troubled(place) == ["", ""])
    processes(servers, "kafka-1")[0].send_signal(signal.SIGKILL)
    until(lambda: len([said for said in troubled(place) if SAID in said]) == 2, 60)
    until(lambda: not leads(place)[0])
    assert leads(place)[1].startswith(f"nobody leads shard 0: {SAID}")
    where = ("--name", place.name, "--postgres", place.postgres)
    shown = CliRunner().invoke(main, ["status", *where], catch_exceptions=False).stdout
    assert f"trouble    {SAID}" in shown
    embedded.up(servers.home, say=lambda _line: None)
    until(lambda: troubled(place) == ["", ""], 60)
    until(lambda: leads(place) == (True, "every shard has its leader"), 60)
