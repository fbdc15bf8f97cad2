"""What a mark leaves in the tables, and how much may be marked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harvest_dagster import Message, OutboxError
from tests.support.account import judge, read
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

LINGERS = {"producer_kafka": {"linger.ms": 60_000}, "delivery": "at_least_once"}
"""Records are marked and given to the client, which keeps them to itself."""

IN_FLIGHT = """
    SELECT count(o.id), COALESCE(sum(octet_length(o.kafka_value)), 0)
      FROM harvest.claim c JOIN outbox o ON o.id <@ c.ids
"""


def test_claims(place: Place, start_tour: StartTour) -> None:
    """A mark is a claim of just the ids of its batch, under the leader's epoch."""
    place.put(30)
    place.rows("DELETE FROM outbox WHERE id IN (4, 11, 12)")
    lease = place.lease()
    limits = {"mark_query_records": 10}
    running = start_tour(place.config(**LINGERS, limits=limits), lease)
    until(lambda: running.tour.totals.marked == 27)
    assert place.rows(
        "SELECT epoch, batch, ids::text, count FROM harvest.claim ORDER BY batch"
    ) == [
        (lease.epoch, 1, "{[1,4),[5,11),[13,14)}", 10),
        (lease.epoch, 2, "{[14,24)}", 10),
        (lease.epoch, 3, "{[24,31)}", 7),
    ]


def test_row_marks(place: Place, start_tour: StartTour) -> None:
    """With `marks: rows` each record in goharvest's table carries the leader's id too."""
    place.put(20, outbox="goharvest_outbox")
    lease = place.lease()
    config = place.config(**LINGERS, marks="rows", outbox="goharvest_outbox")
    running = start_tour(config, lease)
    until(lambda: running.tour.totals.marked == 20)
    found = place.rows("SELECT DISTINCT leader_id FROM goharvest_outbox")
    assert found == [(lease.leader_id,)]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_row_marks_are_harvested(place: Place, start_tour: StartTour, delivery: str) -> None:
    """Records that are marked one by one are published as any."""
    place.put(2000, outbox="goharvest_outbox")
    config = place.config(delivery=delivery, marks="rows", outbox="goharvest_outbox")
    start_tour(config, place.lease())
    place.drained(outbox="goharvest_outbox")
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_row_marks_need_their_column(place: Place, start_tour: StartTour) -> None:
    """A table that has no place for row marks ends the tour, and tells what to set."""
    running = start_tour(place.config(marks="rows"), place.lease())
    running.join()
    assert isinstance(running.failure, OutboxError)
    assert "marks: claims" in str(running.failure)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("limits", [{"max_in_flight_records": 70}, {"max_in_flight_bytes": 5000}])
def test_window(place: Place, start_tour: StartTour, delivery: str, limits: dict[str, int]) -> None:
    """No more is in flight than may be; of bytes, one record more, so that any gets through."""
    place.put(1500)
    marked = {"mark_query_records": 50, **limits}
    running = start_tour(place.config(delivery=delivery, limits=marked), place.lease())
    most = most_size = 0
    with place.connect() as connection:
        while running.tour.totals.purged < 1500:
            records, size = connection.execute(IN_FLIGHT).fetchone() or (0, 0)
            most, most_size = max(most, records, running.tour.in_flight), max(most_size, size)
    assert 0 < most <= limits.get("max_in_flight_records", 1500)
    assert most_size < limits.get("max_in_flight_bytes", 10_000) + 4
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_a_record_larger_than_the_window(place: Place, start_tour: StartTour) -> None:
    """A record of more bytes than may be in flight goes out all the same, by itself."""
    large = place.counting().__next__()._replace(value=b"x" * 5000)
    place.stash([large])
    place.put(100)
    start_tour(place.config(limits={"max_in_flight_bytes": 100}), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_tombstones_take_their_turn(place: Place, start_tour: StartTour) -> None:
    """A record without a value, which takes no room, does not go before what there is no room for.

    Or a topic that is compacted would keep what was deleted.
    """
    place.stash(
        Message(place.topic, f"k{n}", value) for n in range(100) for value in ("x" * 400, None)
    )
    start_tour(place.config(limits={"max_in_flight_bytes": 1000}), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("outbox", ["outbox", "goharvest_outbox"])
def test_retention(place: Place, start_tour: StartTour, delivery: str, outbox: str) -> None:
    """With retention, what was published is moved, whole, instead of deleted."""
    place.put(500, outbox=outbox)
    start_tour(place.config(delivery=delivery, outbox=outbox, retention=3600), place.lease())
    place.drained(outbox=outbox)
    kept: list[tuple[Any, ...]] = place.rows(
        "SELECT kafka_topic, kafka_key, kafka_value, kafka_header_keys[1], kafka_header_values[1]"
        " FROM harvest.retained ORDER BY id"
    )
    assert kept == [(m.topic, m.key, m.value, *m.headers[0]) for m in place.stashed]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
@pytest.mark.parametrize("outbox", ["outbox", "goharvest_outbox"])
def test_retention_of_null_headers(
    place: Place, start_tour: StartTour, delivery: str, outbox: str
) -> None:
    """Headers that are NULL, where somebody's table takes that, are kept as none."""
    for column in ("keys", "values"):
        place.rows(f"ALTER TABLE {outbox} ALTER kafka_header_{column} DROP NOT NULL")
    place.rows(
        f"INSERT INTO {outbox} (create_time, kafka_topic, kafka_key, kafka_header_keys,"
        " kafka_header_values) VALUES (now(), %s, 'k', NULL, NULL)",
        (place.topic,),
    )
    start_tour(place.config(delivery=delivery, outbox=outbox, retention=3600), place.lease())
    place.drained(outbox=outbox)
    kept = place.rows("SELECT kafka_header_keys, kafka_header_values FROM harvest.retained")
    assert kept == [([], [])]
