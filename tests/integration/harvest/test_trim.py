"""What need not be kept any more goes, however long somebody leads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from harvest_dagster.harvest.trim import Trimmer
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartHarvest

OLD_EVENTS = """
    INSERT INTO harvest.event (name, shard, kind, at)
    SELECT name, 0, 'held', now() - interval '40 days'
      FROM generate_series(1, %s), unnest(ARRAY[%s, 'another']) AS name
"""
REMOVE_A_PORTION = """
    DELETE FROM harvest.event
     WHERE id IN (SELECT id FROM harvest.event WHERE name = %s ORDER BY at LIMIT 10000)
"""
REQUEUED = """
    INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_header_keys,
                                kafka_header_values, reason, holds_key, requeued_at)
    VALUES (%(name)s, 0, 1, 't', '{}', '{}', 'r', false, now() - interval '40 days'),
           (%(name)s, 0, 2, 't', '{}', '{}', 'r', false, now()),
           (%(name)s, 0, 3, 't', '{}', '{}', 'r', false, NULL)
"""


def test_while_somebody_leads(place: Place, start_harvest: StartHarvest) -> None:
    """A leader goes on where its round has begun, which took a portion, and begins no other."""
    place.rows(OLD_EVENTS, (25_000, place.name))
    running = start_harvest(place.config(limits={"min_metrics_interval": 0.1}))
    until(lambda: running.harvest.totals().rounds and not place.events("held"))
    assert running.harvest.totals().rounds == 1


def test_what_was_published(place: Place, start_harvest: StartHarvest) -> None:
    """It goes when it was kept for long enough, however often the trimmer has come before."""
    start_harvest(place.config(retention=3600))
    place.put(100)
    place.drained()
    trimmer = Trimmer(place.config(retention=3600), every_seconds=0.2)

    def kept() -> int:
        trimmer.trim()
        return int(place.rows("SELECT count(*) FROM harvest.retained")[0][0])

    assert kept() == 100
    place.rows("UPDATE harvest.retained SET purged_at = now() - interval '2 hours' WHERE id <= 60")
    until(lambda: kept() < 100)
    assert kept() == 40


def test_two_at_once(place: Place) -> None:
    """What another removes just now is no sign that there is no more."""
    place.rows(OLD_EVENTS, (15_000, place.name))
    trimmer = Trimmer(place.config())
    with place.connect() as other, other.transaction():
        other.execute(REMOVE_A_PORTION, (place.name,))
        trims = threading.Thread(target=trimmer.trim)
        trims.start()
        until(lambda: place.is_waiting("harvest %trim"))
    trims.join()
    trimmer.trim()
    assert place.events("held") == []


def test_more_than_a_portion(place: Place) -> None:
    """However much is too old, one call of the trimmer after another removes it, and no more."""
    place.rows(OLD_EVENTS, (25_000, place.name))
    place.rows(REQUEUED, {"name": place.name})
    trimmer = Trimmer(place.config())

    def trimmed() -> bool:
        trimmer.trim()
        return not place.events("held")

    until(trimmed)
    assert place.rows("SELECT name, count(*) FROM harvest.event GROUP BY name") == [
        ("another", 25_000)
    ]
    assert place.rows("SELECT id FROM harvest.parked ORDER BY id") == [(2,), (3,)]
