"""What a leader does with the remains of the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harvest_dagster.harvest.recover import OFFSETS_KEPT_SECONDS
from harvest_dagster.harvest.rounds import Before, RoundRun
from tests.support.account import judge, read
from tests.support.remains import claim, producer_of, publish, send
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour


def test_published_claims_are_purged(place: Place, start_tour: StartTour) -> None:
    """Claims that Kafka knows as published are purged, and not published again."""
    place.put(200)
    dead = place.lease()
    claim(place, dead, 1, 1, 100)
    publish(place, 1, place.stashed[:100], producer_of(place))
    running = start_tour(place.config(), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    assert running.tour.totals.published == 100
    assert place.kinds("remarked") == []


def test_unpublished_claims_are_remarked(place: Place, start_tour: StartTour) -> None:
    """Claims beyond the committed number are marked again, and that is written down."""
    place.put(300)
    dead = place.lease()
    for batch in (1, 2, 3):
        claim(place, dead, batch, batch * 100 - 99, batch * 100)
    publish(place, 1, place.stashed[:100], producer_of(place))
    lease = place.lease()
    running = start_tour(place.config(), lease)
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    (event,) = place.events("remarked", "ambiguous")
    told = {key: event.detail[key] for key in ("records", "claims", "from_epoch", "to_epoch")}
    expected = {"records": 200, "claims": 2, "from_epoch": dead.epoch, "to_epoch": lease.epoch}
    assert (event.kind, event.epoch, told) == ("remarked", lease.epoch, expected)
    assert running.tour.totals.remarked == 200


@pytest.mark.parametrize("turn", range(2))
def test_an_open_transaction_is_settled(place: Place, start_tour: StartTour, turn: int) -> None:
    """What a dead leader sent in a transaction that it never committed, no reader gets."""
    place.put(100)
    dead = place.lease()
    claim(place, dead, 1, 1, 100)
    abandoned = producer_of(place, turn=turn)
    send(abandoned, place.stashed)
    start_tour(place.config(), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_at_least_once_remarks_all(place: Place, start_tour: StartTour) -> None:
    """At least once, every claim that is left is marked again."""
    place.put(100)
    dead = place.lease()
    claim(place, dead, 7, 1, 100)
    start_tour(place.config(delivery="at_least_once"), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "at_least_once")
    assert [event.detail["records"] for event in place.events("remarked")] == [100]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_careful_rounds_end(place: Place, delivery: str) -> None:
    """A round that sends each record by itself does so with what was in flight, and no more."""
    place.put(300)
    claim(place, place.lease(), 1, 1, 100)
    config, lease = (
        place.config(delivery=delivery, limits={"mark_query_records": 100}),
        place.lease(),
    )
    careful = RoundRun(config, lease, Before(careful=True), lambda: True)
    careful.run()
    assert (careful.counts("published"), place.waiting()) == (100, 200)
    judge(place.stashed[:100], read(place.kafka, place.topic), delivery)


@pytest.mark.parametrize(
    ("age", "kind"), [(OFFSETS_KEPT_SECONDS + 60, "ambiguous"), (60.0, "remarked")]
)
def test_expired_offsets(place: Place, start_tour: StartTour, age: float, kind: str) -> None:
    """Claims older than Kafka's memory, of which it knows nothing, are told to be ambiguous."""
    place.put(10)
    claim(place, place.lease(), 5, 1, 10, age)
    start_tour(place.config(), place.lease())
    place.drained()
    (event,) = place.events("ambiguous", "remarked")
    assert event.kind == kind
    assert ("doubles are possible" in event.detail.get("warning", "")) == (kind == "ambiguous")


def test_another_database_of_the_same_name(place: Place, start_tour: StartTour) -> None:
    """What Kafka knows of another database's batches does not count as published here."""
    place.put(100)
    claim(place, place.lease(), 1, 1, 100)
    publish(place, 9, [], producer_of(place), identity="another/database")
    start_tour(place.config(), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_numbers_go_on(place: Place, start_tour: StartTour) -> None:
    """A batch's number is never used again, whatever was committed or claimed before."""
    place.put(20)
    claim(place, place.lease(), 41, 1, 10)
    publish(place, 17, [], producer_of(place))
    config = place.config(producer_kafka={"linger.ms": 60_000}, delivery="at_least_once")
    running = start_tour(config, place.lease())
    until(lambda: running.tour.totals.marked == 20)
    assert place.rows("SELECT batch FROM harvest.claim") == [(42,)]


def test_delivery_may_change_to_at_least_once(place: Place, start_tour: StartTour) -> None:
    """What an exactly-once leader has published, and not purged, is not published again."""
    place.put(300)
    dead = place.lease()
    for batch in (1, 2, 3):
        claim(place, dead, batch, batch * 100 - 99, batch * 100)
    producer = producer_of(place)
    publish(place, 1, place.stashed[:100], producer)
    publish(place, 2, place.stashed[100:200], producer)
    send(producer, place.stashed[200:])
    running = start_tour(place.config(delivery="at_least_once"), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
    assert running.tour.totals.published == 100


def test_delivery_may_change(place: Place, start_tour: StartTour) -> None:
    """Claims of an at-least-once leader that died are not taken for batches published before."""
    limits = {"mark_query_records": 10}
    place.put(100)
    once = start_tour(place.config(limits=limits), place.lease())
    place.drained()
    assert once.end() is None
    place.put(100)
    lingers = {"producer_kafka": {"linger.ms": 60_000}, "delivery": "at_least_once"}
    dies = start_tour(place.config(**lingers, limits=limits), place.lease())
    until(lambda: dies.tour.totals.marked == 100)
    dies.tour.abort()
    dies.join()
    start_tour(place.config(limits=limits), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
