"""Servers that are killed under load, and come back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from tests.faults.conftest import BUSY, Load, kill, new_place, settle
from tests.integration.harvest.account import Reader, Received, judge
from tests.integration.harvest.place import Place, until

if TYPE_CHECKING:
    from tests.integration.harvest.running import StartHarvest

Own = Callable[..., Servers]
DELIVERIES = ["exactly_once", "at_least_once"]


def harvested(servers: Servers, start_harvest: StartHarvest) -> dict[str, Place]:
    """Have an outbox harvested either way."""
    places = {delivery: new_place(servers, delivery) for delivery in DELIVERIES}
    for delivery, place in places.items():
        start_harvest(place.config(delivery=delivery, limits=BUSY))
    for place in places.values():
        until(lambda: place.events("tour_started"), 60)  # noqa: B023 - it is called at once
    return places


def back(servers: Servers, name: str) -> None:
    """Kill a server, and have it come back."""
    kill(servers, name)
    embedded.up(servers.home, say=lambda _line: None)


def test_all_there_is_is_killed(own_servers: Own, start_harvest: StartHarvest) -> None:
    """PostgreSQL, and the only broker, are killed at work and come back: all goes out all right."""
    servers = own_servers()
    places = harvested(servers, start_harvest)
    for name in ("postgres", "kafka-1"):
        for place in places.values():
            place.put(2000)
        until(lambda: all(place.waiting() < 1800 for place in places.values()))
        back(servers, name)
        for place in places.values():
            place.drained(60)
    for delivery, place in places.items():
        settle(place, delivery)


def test_one_of_three_brokers_is_killed(own_servers: Own, start_harvest: StartHarvest) -> None:
    """A broker of a cluster is killed under load, and comes back; readers notice nothing."""
    servers = own_servers(brokers=3)
    places = harvested(servers, start_harvest)
    readers = {d: Reader(place.kafka, place.topic) for d, place in places.items()}
    with ExitStack() as loads:
        for place in places.values():
            loads.callback(Load(place).stop)
        until(lambda: all(len(place.stashed) > 500 for place in places.values()))
        back(servers, "kafka-2")
    for delivery, place in places.items():
        settle(place, delivery, 90)
        judge(place.stashed, caught_up(readers[delivery], place), delivery)


def caught_up(reader: Reader, place: Place) -> list[Received]:
    """Wait until a reader has read all, and give that."""
    until(lambda: len({m.value for m in reader.found}) == len(place.stashed))
    return reader.stop()
