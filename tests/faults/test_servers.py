"""Servers that are killed or stopped, or hang, under load, and come back."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.embedded.process import is_alive
from tests.support.faults import BUSY, hung, processes, settle
from tests.support.load import Load
from tests.support.place import Place
from tests.support.waiting import a_while, until

if TYPE_CHECKING:
    from tests.support.faults import NewPlace
    from tests.support.running import StartHarvest

Own = Callable[..., Servers]
Fault = Callable[[Servers], None]
DELIVERIES = ["exactly_once", "at_least_once"]


def harvested(
    servers: Servers, new_place: NewPlace, start_harvest: StartHarvest
) -> dict[str, Place]:
    """Have an outbox harvested either way."""
    places = {delivery: new_place(servers, delivery) for delivery in DELIVERIES}
    for delivery, place in places.items():
        start_harvest(place.config(delivery=delivery, limits=BUSY))
    for place in places.values():
        until(lambda: place.events("tour_started"), 60)  # noqa: B023 - it is called at once
    return places


def back(servers: Servers, name: str, how: signal.Signals = signal.SIGKILL) -> None:
    """End a server, and have it come back."""
    own = processes(servers, name)[0]
    own.send_signal(how)
    until(lambda: not is_alive(own), 60)
    embedded.up(servers.home, say=lambda _line: None)


def away(servers: Servers, name: str, seconds: float) -> None:
    """Have a server answer nothing for some time."""
    with hung(servers, name):
        a_while(seconds)


def each_survived(servers: Servers, places: dict[str, Place], faults: list[Fault]) -> None:
    """Have one fault after another at work, and judge the whole."""
    for fault in faults:
        for place in places.values():
            place.put(2000)
        until(lambda: all(place.waiting() < 1800 for place in places.values()))
        fault(servers)
        for place in places.values():
            place.drained(90)
    for delivery, place in places.items():
        settle(place, delivery)


@pytest.mark.long
def test_the_only_broker_is_killed(
    own_servers: Own, new_place: NewPlace, start_harvest: StartHarvest
) -> None:
    """The only broker is killed at work, and comes back: all goes out all right."""
    servers = own_servers()
    places = harvested(servers, new_place, start_harvest)
    each_survived(servers, places, [lambda s: back(s, "kafka-1")])


@pytest.mark.long
def test_all_there_is_goes_and_comes_back(
    own_servers: Own, new_place: NewPlace, start_harvest: StartHarvest
) -> None:
    """PostgreSQL is killed, and stopped, it and the only broker hang: all goes out all right.

    They hang for longer than the session, so that whoever leads must be elected anew.
    """
    servers = own_servers()
    faults: list[Fault] = [
        lambda s: back(s, "postgres"),
        lambda s: back(s, "postgres", signal.SIGINT),
        lambda s: away(s, "postgres", 8),
        lambda s: away(s, "kafka-1", 8),
    ]
    each_survived(servers, harvested(servers, new_place, start_harvest), faults)


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True])
def test_one_of_three_brokers(
    own_servers: Own, new_place: NewPlace, start_harvest: StartHarvest, *, hangs: bool
) -> None:
    """A broker of a cluster is killed, or hangs, under load, and is back: readers see all once."""
    servers = own_servers(brokers=3)
    places = harvested(servers, new_place, start_harvest)
    with ExitStack() as loads:
        for place in places.values():
            loads.callback(Load(place).stop)
        until(lambda: all(len(place.stashed) > 500 for place in places.values()))
        if hangs:
            away(servers, "kafka-2", 15)
        else:
            back(servers, "kafka-2")
    for delivery, place in places.items():
        settle(place, delivery, 90)
