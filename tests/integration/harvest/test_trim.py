"""What need not be kept any more goes, however long somebody leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harvest_dagster.harvest import trim
from harvest_dagster.harvest.trim import Trimmer
from tests.support.waiting import a_while, until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartHarvest

OLD_EVENTS = """
    INSERT INTO harvest.event (name, shard, kind, at)
    SELECT name, 0, 'held', now() - interval '40 days'
      FROM generate_series(1, %s), unnest(ARRAY[%s, 'another']) AS name
"""
REQUEUED = """
    INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_header_keys,
                                kafka_header_values, reason, holds_key, requeued_at)
    VALUES (%(name)s, 0, 1, 't', '{}', '{}', 'r', false, now() - interval '40 days'),
           (%(name)s, 0, 2, 't', '{}', '{}', 'r', false, now()),
           (%(name)s, 0, 3, 't', '{}', '{}', 'r', false, NULL)
"""


def test_while_somebody_leads(
    place: Place, start_harvest: StartHarvest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was published goes when it was kept for long enough, in one and the same round."""
    monkeypatch.setattr(trim, "_EVERY_SECONDS", 0.2)
    limits = {"min_metrics_interval": 0.1}
    running = start_harvest(place.config(retention=3600, limits=limits))
    place.put(100)
    place.drained()
    a_while()
    assert place.rows("SELECT count(*) FROM harvest.retained") == [(100,)]
    place.rows("UPDATE harvest.retained SET purged_at = now() - interval '2 hours' WHERE id <= 60")
    until(lambda: place.rows("SELECT count(*) FROM harvest.retained") == [(40,)])
    assert running.harvest.totals().rounds == 1


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
