"""What Kafka refuses is set aside, and goes on when an operator says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from harvest_dagster import Message, stash
from harvest_dagster.embedded import Servers
from tests.support.parked import listed
from tests.support.place import set_limit
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.reaping import Reap, Reaping
    from tests.support.topics import MakeTopic, Published


class Trouble(NamedTuple):
    """A harvest that has set a record aside, and how its commands name it."""

    names: tuple[str, ...]
    topic: str
    large: str
    reaping: Reaping


@pytest.fixture(params=["exactly_once", "at_least_once", "sequenced"])
def stashed_large(
    request: pytest.FixtureRequest,
    connection: psycopg.Connection[Any],
    outbox: str,
    made_topic: MakeTopic,
) -> tuple[str, str, str, str]:
    """Stash messages for a topic that will not take one of them; tell delivery, outbox, and it.

    Exactly once from an outbox of bytes; at least once from goharvest's table.
    """
    exactly = request.param == "exactly_once"
    table, most = (outbox, 100_000) if exactly else ("goharvest_outbox", 5_000)
    topic, large = made_topic(max_message_bytes=str(most)), "x" * (most + 1000)
    values = [("a", "0"), ("b", "0"), ("a", large), ("b", "1"), ("a", "2"), ("c", "0")]
    stash(connection, [Message(topic, key, value) for key, value in values], outbox=table)
    connection.commit()
    return request.param, table, topic, large


@pytest.fixture
def trouble(
    stashed_large: tuple[str, str, str, str],
    servers: Servers,
    data_source: str,
    outbox: str,
    reap: Reap,
    harvest: Harvest,
) -> Trouble:
    """A reap that has met a message that its topic does not take."""
    delivery, table, topic, large = stashed_large
    Path("reaper.yaml").write_text(
        f"harvest:\n  harvestName: {outbox}\n  outboxTable: {table}\n  delivery: {delivery}\n"
        f"  dataSource: {data_source}\n"
        f"  baseKafkaConfig:\n    bootstrap.servers: {servers.kafka}\n"
    )
    reaping, names = reap("-f", "reaper.yaml"), ("--name", outbox, "--outbox", table)
    until(lambda: listed(harvest, *names))
    return Trouble(names, topic, large, reaping)


def of_key(found: list[tuple[bytes, bytes]], key: bytes) -> list[str]:
    """The values of one key, in order."""
    return [value.decode() for its, value in found if its == key]


def test_what_kafka_refuses(harvest: Harvest, trouble: Trouble, published: Published) -> None:
    """A refused record is set aside with its reason; its key's later ones wait, and no other."""
    found = published(trouble.topic, 4)
    assert [of_key(found, key) for key in (b"a", b"b", b"c")] == [["0"], ["0", "1"], ["0"]]
    [record] = listed(harvest, *trouble.names)
    assert (record["key"], record["tries"], record["holds_key"]) == ("a", 1, True)
    assert "large" in record["reason"]
    told = json.loads(harvest("status", "--json", *trouble.names).stdout)
    assert (told["backlog"]["records"], told["parked"]["held_keys"]) == (1, 1)


def test_requeue_what_kafka_refused(
    harvest: Harvest, trouble: Trouble, admin: AdminClient, published: Published
) -> None:
    """When the topic takes it and it is requeued, it goes out, and then what waited for it."""
    set_limit(admin, trouble.topic, 1_000_000)
    done = harvest("parked", "requeue", "--topic", trouble.topic, *trouble.names)
    assert done.stdout.startswith(f"requeued 1 record into {trouble.names[-1]}: ")
    assert of_key(published(trouble.topic, 6), b"a") == ["0", trouble.large, "2"]
    assert trouble.reaping.stopped() == 0
    assert listed(harvest, *trouble.names) == []


def test_requeue_too_early(harvest: Harvest, trouble: Trouble) -> None:
    """What is requeued before anything was mended is set aside again, and its tries are counted."""
    harvest("parked", "requeue", "--all", *trouble.names)
    until(lambda: [record["tries"] for record in listed(harvest, *trouble.names)] == [2])
    assert trouble.reaping.stopped() == 0


def test_discard_what_kafka_refused(
    harvest: Harvest, trouble: Trouble, published: Published
) -> None:
    """When a refused record is discarded, its key goes on without it."""
    done = harvest("parked", "discard", "--yes", "--key", "a", *trouble.names)
    assert done.stdout.startswith(f"discarded 1 record of {trouble.names[1]}: ")
    assert of_key(published(trouble.topic, 5), b"a") == ["0", "2"]
