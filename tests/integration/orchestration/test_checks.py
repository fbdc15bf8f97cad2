"""Checks turn red when it is so, and green again when it is over; on real tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import psycopg

from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.judging import inspect
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import read_status
from harvest_dagster.orchestration.checks import severity
from harvest_dagster.postgres.names import TableName
from harvest_dagster.work.described import judged
from harvest_dagster.work.room import Verdict
from tests.support.place import Place

if TYPE_CHECKING:
    from tests.support.running import StartTour

TABLE = TableName("outbox")


def seen(place: Place) -> dict[str, Verdict]:
    """Judge what is there now."""
    with place.connect() as connection:
        status = read_status(connection, TABLE, place.name, events=0)
    return {verdict.check: verdict for verdict in judged(ROOM, Harvesting(place.config()), status)}


def test_what_waits_for_long(place: Place, start_tour: StartTour) -> None:
    """Records that nobody harvests are late, and stand still, until somebody does."""
    place.put(3)
    place.rows("UPDATE outbox SET create_time = now() - interval '2 minutes'")
    red = seen(place)
    assert (red["young"].passed, red["no_stall"].passed, red["one_leader"].passed) == (False,) * 3
    assert red["young"].says == "3 records wait, the oldest for 2 min"
    start_tour(place.config(), place.lease())
    place.drained()
    green = seen(place)
    assert all(green[check].passed for check in ("young", "no_stall", "one_leader"))


def test_the_table(database: str) -> None:
    """What is amiss with the table is told, and no longer once it is mended."""
    with psycopg.connect(database, autocommit=True) as connection:
        (well,) = inspect(connection, TABLE)
        connection.execute("ALTER TABLE outbox RENAME kafka_header_values TO gone")
        (red,) = inspect(connection, TABLE)
        connection.execute("ALTER TABLE outbox RENAME gone TO kafka_header_values")
        (green,) = inspect(connection, TABLE)
    assert (red.passed, severity(red)) == (False, dg.AssetCheckSeverity.ERROR)
    assert "kafka_header_values" in red.says
    assert (well.passed, green.passed) == (True, True)
