"""An outbox whose ids are begun anew, as TRUNCATE ... RESTART IDENTITY does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message
from harvest_dagster.outbox import parked
from harvest_dagster.outbox.parked import Choice
from harvest_dagster.postgres.names import TableName
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

COLUMNS = "kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values"
DELIVERIES = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])


def begin_anew(place: Place) -> None:
    """Have the next record get the first id again."""
    place.rows("TRUNCATE outbox RESTART IDENTITY")


def refused(place: Place, name: str) -> Message:
    """Make a message for a partition that is not there."""
    return Message(place.topic, name, f"value of {name}", {name: "header"}, 99)


def row(message: Message) -> tuple[Any, ...]:
    """Tell how the tables of ours have a message."""
    names, values = zip(*message.headers, strict=True)
    return (message.topic, message.key, message.value, [*names], [*values])


def requeue_all(place: Place) -> None:
    """Put back what is set aside, as an operator does."""
    with psycopg.connect(place.postgres) as operator:
        found = parked.chosen(operator, Choice(place.name))
        parked.requeue(operator, TableName("outbox"), place.name, found, "a test")


def test_another_record_is_parked_under_the_same_id(place: Place, start_tour: StartTour) -> None:
    """What is set aside, and put back, is the record that was refused last, whole."""
    start_tour(place.config(), place.lease())
    place.stash([refused(place, "old")])
    until(lambda: place.rows("SELECT id FROM harvest.parked"))
    begin_anew(place)
    place.stash([new := refused(place, "new")])
    start_tour(place.config(), place.lease())
    until(lambda: place.rows("SELECT id FROM harvest.parked WHERE tries > 1"))
    assert place.rows(f"SELECT id, {COLUMNS} FROM harvest.parked") == [(1, *row(new))]
    requeue_all(place)
    until(lambda: place.rows("SELECT tries FROM harvest.parked") == [(3,)])
    assert place.rows(f"SELECT id, {COLUMNS} FROM harvest.parked") == [(1, *row(new))]


@DELIVERIES
def test_another_record_is_kept_under_the_same_id(
    place: Place, start_tour: StartTour, delivery: str
) -> None:
    """Of two records that were published under one id, the later one is kept."""
    start_tour(place.config(delivery=delivery, retention=3600), place.lease())
    place.put(1)
    place.drained()
    begin_anew(place)
    (new,) = place.put(1)
    start_tour(place.config(delivery=delivery, retention=3600), place.lease())
    place.drained()
    assert place.rows(f"SELECT id, {COLUMNS} FROM harvest.retained") == [(1, *row(new))]
