"""A candidacy lasts as long as its sensor ticks, and hands over in good order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harvest_dagster.election import lease as leases
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest import tours
from harvest_dagster.harvest.delegate import Delegate
from harvest_dagster.orchestration import candidacy
from harvest_dagster.orchestration.candidacy import Candidacy, candidacy_of
from tests.integration.harvest.place import Place, place, until

__all__ = ["place"]

SENSOR = "harvest_leader"


@pytest.fixture
def stands(place: Place) -> Iterator[Candidacy]:
    """A candidacy that leads."""
    made = candidacy_of(place.config(), SENSOR, [])
    until(lambda: made.leads(0))
    yield made
    made.stop()


def test_ticks_find_the_same(place: Place, stands: Candidacy) -> None:
    """Each tick finds what the first one made."""
    assert candidacy_of(place.config(), SENSOR, []) is stands


def test_a_second_sensor_is_refused(place: Place, stands: Candidacy) -> None:
    """Two sensors of one process for one outbox are a mistake, which is told."""
    assert stands.leads(0)
    with pytest.raises(HarvestStateError, match="turn one of them off"):
        candidacy_of(place.config(), "another_leader", [])


def test_silence_ends_it(place: Place, stands: Candidacy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ticks it resigns, and the next tick makes another."""
    monkeypatch.setattr(candidacy, "SILENT_SECONDS", 1.0)
    until(lambda: stands.over and not stands.leads(0))
    with place.connect() as connection:
        until(lambda: leases.read(connection, place.name)[0].expired)
    monkeypatch.undo()
    again = candidacy_of(place.config(), SENSOR, [])
    assert again is not stands
    until(lambda: again.leads(0))
    again.stop()


def test_another_configuration_begins_anew(place: Place, stands: Candidacy) -> None:
    """A code location that is loaded with other settings stands with these."""
    other = candidacy_of(place.config(limits={"queue_timeout": 5}), SENSOR, [])
    assert other is not stands
    assert stands.over
    until(lambda: other.leads(0))
    other.stop()


def test_it_lets_the_tour_end_before_it_hands_over(place: Place, stands: Candidacy) -> None:
    """The tour settles what is in flight, while the lease is still held."""
    place.put(300)
    tour = Delegate(place.config(), 0, "run-1")
    tour.begin()
    stands.stop()
    assert tour.wait(10)
    with place.connect() as connection:
        (row,) = tours.read(connection, place.name)
        assert (row.ended, row.in_flight) == (True, 0)
    assert place.kinds("tour_ended", "revoked") == ["tour_ended", "revoked"]
    assert place.rows("SELECT FROM harvest.claim") == []
