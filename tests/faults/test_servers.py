"""Servers that are killed or stopped, or hang, under load, and come back."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.embedded.process import is_alive
from tests.support.faults import BUSY, hung, processes, settle, stuttering
from tests.support.load import Load
from tests.support.place import Place
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.faults import NewPlace
    from tests.support.running import RunningHarvest, StartHarvest, StartTour

Own = Callable[..., Servers]
Fault = Callable[[Servers], None]
BROKERS = 3
DELIVERIES = ["exactly_once", "at_least_once", "sequenced"]


def harvested(
    servers: Servers, new_place: NewPlace, start_harvest: StartHarvest
) -> tuple[dict[str, Place], list[RunningHarvest]]:
    """Have an outbox harvested either way."""
    places = {delivery: new_place(servers, delivery) for delivery in DELIVERIES}
    harvests = [
        start_harvest(place.config(delivery=delivery, limits=BUSY))
        for delivery, place in places.items()
    ]
    for place in places.values():
        until(lambda: place.events("tour_started"), 60)  # noqa: B023 - it is called at once
    return places, harvests


def back(servers: Servers, name: str, how: signal.Signals = signal.SIGKILL) -> None:
    """End a server, and have it come back."""
    own = processes(servers, name)[0]
    own.send_signal(how)
    until(lambda: not is_alive(own), 60)
    embedded.up(servers.home, say=lambda _line: None)


def away(servers: Servers, name: str, missed: Callable[[], bool]) -> None:
    """Have a server answer nothing until that is noticed."""
    with hung(servers, name):
        until(missed, 60)


def nobody_leads(harvests: list[RunningHarvest]) -> bool:
    """Return whether none of them trusts its lease any more."""
    return not any(running.harvest.is_leader() for running in harvests)


def is_replaced(place: Place) -> bool:
    """Return whether one of three brokers is taken to be gone, and its partitions led by others."""
    with suppress(KafkaException):  # the one that hangs may have been asked
        return len(AdminClient(place.kafka).list_topics(timeout=5).brokers) < BROKERS
    return False


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
    places, _ = harvested(servers, new_place, start_harvest)
    each_survived(servers, places, [lambda s: back(s, "kafka-1")])


@pytest.mark.long
def test_all_there_is_goes_and_comes_back(
    own_servers: Own, new_place: NewPlace, start_harvest: StartHarvest
) -> None:
    """PostgreSQL is killed, and stopped, it and the only broker hang: all goes out all right.

    They hang until nobody trusts a lease any more, so that who leads must be elected anew.
    """
    servers = own_servers()
    places, harvests = harvested(servers, new_place, start_harvest)
    faults: list[Fault] = [
        lambda s: back(s, "postgres"),
        lambda s: back(s, "postgres", signal.SIGINT),
        lambda s: away(s, "postgres", lambda: nobody_leads(harvests)),
        lambda s: away(s, "kafka-1", lambda: nobody_leads(harvests)),
    ]
    each_survived(servers, places, faults)


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True])
def test_one_of_three_brokers(
    own_servers: Own, new_place: NewPlace, start_harvest: StartHarvest, *, hangs: bool
) -> None:
    """A broker of a cluster is killed, or hangs, under load, and is back: readers see all once."""
    servers = own_servers(brokers=BROKERS)
    places, _ = harvested(servers, new_place, start_harvest)
    with ExitStack() as loads:
        for place in places.values():
            loads.callback(Load(place).stop)
        until(lambda: all(len(place.stashed) > 500 for place in places.values()))
        if hangs:
            away(servers, "kafka-2", lambda: is_replaced(next(iter(places.values()))))
        else:
            back(servers, "kafka-2")
    for delivery, place in places.items():
        settle(place, delivery, 90)


@pytest.mark.long
def test_a_broker_stutters(own_servers: Own, new_place: NewPlace, start_tour: StartTour) -> None:
    """What lingers in a client has its time for an answer on top: it does not time out for ever."""
    servers = own_servers()
    place = new_place(servers, "slow")
    lingers = {"linger.ms": 900}
    place.put(500)
    with stuttering(servers, "kafka-1", seconds=0.8):
        start_tour(place.config(delivery="at_least_once", producer_kafka=lingers), place.lease())
        place.drained()
    settle(place, "at_least_once")
