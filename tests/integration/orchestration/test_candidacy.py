"""A candidacy lasts as long as its sensor ticks, and hands over in good order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.ledger import lease as leases
from harvest_dagster.orchestration.candidacy import Candidacy, candidacy_of
from harvest_dagster.orchestration.pulse import LONGEST_SILENCE, Pulse
from harvest_dagster.work import tours
from harvest_dagster.work.delegate import Delegate
from tests.support.clock import Clock
from tests.support.place import Place
from tests.support.waiting import until

SENSOR = "harvest_leader"


def standing(
    config: HarvestConfig, sensor: str, orphaned: Callable[[], None] = lambda: None
) -> Candidacy:
    """Let a sensor tick, and return its candidacy."""
    return candidacy_of(ROOM, Harvesting(config), sensor, orphaned)


@pytest.fixture
def stands(place: Place) -> Iterator[Candidacy]:
    """A candidacy that leads."""
    made = standing(place.config(), SENSOR)
    until(lambda: made.leads(0))
    yield made
    made.stop()


@contextmanager
def stuck_in_flight(place: Place) -> Iterator[None]:
    """Keep what is in the outbox from being purged: somebody has a lock on its rows."""
    with place.connect() as holding, holding.transaction():
        holding.execute("SELECT FROM outbox FOR UPDATE")
        yield


def test_ticks_find_the_same(place: Place, stands: Candidacy) -> None:
    """Each tick finds what the first one made."""
    assert standing(place.config(), SENSOR) is stands


def test_a_second_sensor_is_refused(place: Place, stands: Candidacy) -> None:
    """Two sensors of one process for one outbox are a mistake, which is told."""
    assert stands.leads(0)
    with pytest.raises(HarvestStateError, match="turn one of them off"):
        standing(place.config(), "another_leader")


def test_a_second_name_for_one_table_is_refused(place: Place, stands: Candidacy) -> None:
    """Two harvests of one table would publish all of it twice, whatever its address looks like."""
    assert stands.leads(0)
    elsewhere = place.postgres.replace("127.0.0.1", "localhost")
    again = place.config(name="again", postgres=elsewhere, outbox="public.outbox")
    with pytest.raises(HarvestStateError, match="published twice"):
        standing(again, "another_leader")


def test_a_second_table_under_one_name_is_refused(place: Place, stands: Candidacy) -> None:
    """A name is one outbox's alone: the error asks for another one."""
    assert stands.leads(0)
    with pytest.raises(HarvestStateError, match="a name of its own"):
        standing(place.config(outbox="elsewhere"), "another_leader")


def test_a_hand_over_keeps_no_other_waiting(place: Place) -> None:
    """While a candidacy lets its tour settle, a tick of another harvest finds its own."""
    place.put(1)
    slow = standing(place.config(limits={"drain_timeout": 25}), SENSOR)
    settings = place.config(name=f"{place.name}-o", outbox="o")
    other = standing(settings, "other_leader")
    until(lambda: slow.leads(0))
    tour = Delegate(slow.led, 0, "run-1")
    with ThreadPoolExecutor() as pool, stuck_in_flight(place):
        tour.begin()
        until(lambda: tour.work.figures["published"])
        changed = pool.submit(standing, place.config(), SENSOR)
        until(lambda: slow.over)
        assert standing(settings, "other_leader") is other
        assert not changed.done()
    changed.result().stop()
    other.stop()
    assert tour.wait(10)


def leading(place: Place, told: Callable[[], None], clock: Clock, **how: float) -> Candidacy:
    """Make a candidacy that leads, and whose sensor has ticked at the time of a clock."""
    made = Candidacy(ROOM, Harvesting(place.config()), SENSOR, told, Pulse(clock), **how)
    until(lambda: made.leads(0))
    return made


def test_silence_ends_it(place: Place) -> None:
    """Without ticks it resigns; when nobody else leads then, there is no tick to tell it."""
    told, clock = threading.Event(), Clock()
    alone = leading(place, told.set, clock, successor_seconds=1.0)
    clock.time += LONGEST_SILENCE + 1
    until(lambda: alone.over and not alone.leads(0))
    with place.connect() as connection:
        until(lambda: leases.read(connection, place.name)[0].expired)
    assert told.wait(30)


def test_the_next_tick_makes_another(place: Place, stands: Candidacy) -> None:
    """Where one has resigned, the next tick stands again."""
    stands.stop()
    again = standing(place.config(), SENSOR)
    assert again is not stands
    until(lambda: again.leads(0))
    again.stop()


def test_a_successor_is_no_news(place: Place) -> None:
    """Where another candidate takes over in time, the check stays as it is."""
    told, clock = threading.Event(), Clock()
    first = leading(place, told.set, clock)
    second = Candidacy(ROOM, Harvesting(place.config()), SENSOR, told.set, Pulse())
    clock.time += LONGEST_SILENCE + 1
    until(lambda: second.leads(0))
    first.guard.join(30)
    assert not told.is_set()
    second.stop()


def test_another_configuration_begins_anew(place: Place, stands: Candidacy) -> None:
    """A code location that is loaded with other settings stands with these."""
    other = standing(place.config(limits={"drain_timeout": 5}), SENSOR)
    assert other is not stands
    assert stands.over
    until(lambda: other.leads(0))
    other.stop()


def test_it_lets_the_tour_end_before_it_hands_over(place: Place, stands: Candidacy) -> None:
    """The tour settles what is in flight, while the lease is still held."""
    place.put(300)
    tour = Delegate(Harvesting(place.config()), 0, "run-1")
    tour.begin()
    stands.stop()
    assert tour.wait(10)
    with place.connect() as connection:
        (row,) = tours.read(connection, place.name)
        assert (row.ended, row.figure("in_flight")) == (True, 0)
    assert place.kinds("tour_ended", "revoked") == ["tour_ended", "revoked"]
    assert place.rows("SELECT FROM harvest.claim") == []
