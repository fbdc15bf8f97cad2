"""Ids that come late, never, or again, while leaders change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from harvest_dagster import Message, stash
from tests.support.account import judge, read
from tests.support.deliveries import ALL
from tests.support.faults import busy
from tests.support.waiting import seconds_until, until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import Spawn, StartHarvest, StartTour

MILLION = 1_000_000
INSERT = (
    "INSERT INTO outbox (id, kafka_topic, kafka_key, kafka_value) VALUES (-7, %s, 'again', 'again')"
)


def lose_a_million(place: Place) -> None:
    """Have a transaction draw a million ids, and roll back."""
    sequence = "pg_get_serial_sequence('outbox', 'id')"
    with psycopg.connect(place.postgres) as connection:
        connection.execute(f"SELECT setval({sequence}, nextval({sequence}) + {MILLION})")
        connection.rollback()


@ALL
def test_a_late_commit(place: Place, start_harvest: StartHarvest, delivery: str) -> None:
    """What committed last under the first id, when all others were harvested, comes in a second."""
    running = start_harvest(place.config(delivery=delivery))
    until(running.harvest.is_leader)
    late = Message(place.topic, "late", "late")
    with psycopg.connect(place.postgres) as writer:
        stash(writer, late)
        place.put(999)
        place.drained()
        writer.commit()
        seconds = seconds_until(lambda: running.harvest.totals().purged == 1000)
    print(f"the late commit came in {seconds:.2f} s")  # noqa: T201 - a measurement
    assert seconds < 1
    judge([late, *place.stashed], read(place.kafka, place.topic), delivery)


@ALL
def test_a_leader_is_killed_among_gaps(
    place: Place, spawn: Spawn, start_tour: StartTour, delivery: str
) -> None:
    """What was drawn under one leader and commits under the next goes out, as what was restored."""
    late, again = Message(place.topic, "late", "late"), Message(place.topic, "again", "again")
    with psycopg.connect(place.postgres) as writer:
        stash(writer, late)
        place.put(500)
        lose_a_million(place)
        place.put(500)
        first = spawn(busy(place, delivery), place.lease())
        place.drained()
        first.kill()
        place.rows(INSERT, (place.topic,))
        place.put(100)
        running = start_tour(place.config(delivery=delivery), place.lease())
        place.drained()
        writer.commit()
        seconds = seconds_until(lambda: not place.waiting() and running.tour.totals.purged >= 102)
    assert seconds < 5
    judge([late, again, *place.stashed], read(place.kafka, place.topic), delivery)
