"""A real harvest over each way in, and with no more than its ACLs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import KafkaError as ErrorCode
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from harvest_dagster import Message
from tests.support.account import judge, read
from tests.support.place import Place
from tests.support.running import StartHarvest
from tests.support.secure import Secure
from tests.support.waiting import until

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTIONS = ResourceType.TRANSACTIONAL_ID
READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS


@pytest.mark.parametrize("way", ["password", "certificate"])
def test_over_tls(secure: Secure, start_harvest: StartHarvest, way: str) -> None:
    """Stashed, harvested and read over SCRAM and verify-full, and over certificates."""
    by_password = way == "password"
    postgres = secure.postgres if by_password else secure.postgres_mtls
    place = Place(postgres, secure.kafka if by_password else secure.kafka_mtls)
    place.put(200)
    start_harvest(place.config())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def harvesters_acls(place: Place) -> list[tuple[ResourceType, str, AclOperation]]:
    """What docs/how-to/security.md lists for a harvester."""
    leaders, group = f"{place.name}.neli", f"{place.name}.harvest"
    return [
        (TOPIC, place.topic, WRITE),
        (TOPIC, place.topic, DESCRIBE_CONFIGS),
        (TOPIC, leaders, READ),
        (GROUP, place.name, READ),
        (GROUP, group, READ),
        *((TRANSACTIONS, f"{place.name}.0.{turn}.harvest", WRITE) for turn in (0, 1)),
    ]


def test_with_least_acls(secure: Secure, start_harvest: StartHarvest) -> None:
    """A harvester and a reader with their ACLs do their work, and nothing else."""
    place = Place(secure.postgres, secure.kafka)
    place.new_topic(f"{place.name}.neli", partitions=1)
    other = place.new_topic()
    harvester = secure.user(f"{place.name}-harvester", *harvesters_acls(place))
    reader = secure.user(
        f"{place.name}-reader", (TOPIC, place.topic, READ), (GROUP, f"{place.name}-read", READ)
    )
    place.put(100)
    running = start_harvest(place.config(base_kafka=harvester))
    place.drained()
    running.harvest.stop(20)
    assert len(found := fetched(reader, f"{place.name}-read", place.topic, 100)) == 100
    assert {m.value() for m in found} == {message.value for message in place.stashed}
    refuses(lambda: produce(harvester, other), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refuses(lambda: produce(reader, place.topic), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    refuses(lambda: fetched(harvester, place.name, place.topic, 1), *FORBIDDEN)
    refuses(lambda: fetched(reader, place.name, place.topic, 1), *FORBIDDEN)
    refuses(lambda: fetched(reader, f"{place.name}-read", other, 1), *FORBIDDEN)
    for settings in (harvester, reader, secure.user(f"{place.name}-stranger")):
        refuses(partial(make_topic, settings, f"{place.name}-new"), *FORBIDDEN)
        refuses(partial(drop_topic, settings, place.topic), *FORBIDDEN)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_a_topic_that_is_seen_and_not_written(
    secure: Secure, start_harvest: StartHarvest, delivery: str
) -> None:
    """Its records wait, though Kafka does not say which topic it refused; all others go out."""
    place = Place(secure.postgres, secure.kafka)
    place.new_topic(f"{place.name}.neli", partitions=1)
    seen = place.new_topic()
    acls = [*harvesters_acls(place), (TOPIC, seen, DESCRIBE)]
    place.stash([Message(seen, "k", "waits")])
    place.put(100)
    harvester = secure.user(f"{place.name}-harvester", *acls)
    start_harvest(place.config(base_kafka=harvester, delivery=delivery))
    until(lambda: place.waiting() == 1)
    place.put(100)
    until(lambda: place.waiting() == 1)
    flow = [message for message in place.stashed if message.topic == place.topic]
    promised = "sequenced" if delivery == "sequenced" else "exactly_once"
    judge(flow, read(place.kafka, place.topic), promised)


FORBIDDEN = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


def refuses(deed: Callable[[], Any], *codes: int) -> None:
    """See that Kafka refuses it."""
    with pytest.raises(KafkaException) as refused:
        deed()
    assert refused.value.args[0].code() in codes


def produce(kafka: dict[str, Any], topic: str) -> None:
    """Write to a topic."""
    errors: list[Any] = []
    producer = Producer(kafka)
    producer.produce(topic, b"x", on_delivery=lambda error, _message: errors.append(error))
    until(lambda: producer.flush(1) == 0)
    if errors[0] is not None:
        raise KafkaException(errors[0])


def fetched(kafka: dict[str, Any], group: str, topic: str, count: int) -> list[Any]:
    """Read so many messages of a topic, as a member of a group."""
    own = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({**kafka, **own, "group.id": group})
    consumer.subscribe([topic])
    found: list[Any] = []

    def enough() -> bool:
        for message in consumer.consume(count, 0.2):
            if message.error() is not None:
                raise KafkaException(message.error())
            found.append(message)
        return len(found) >= count

    try:
        until(enough)
    finally:
        consumer.close()
    return found


def make_topic(kafka: dict[str, Any], name: str) -> None:
    """Make a topic."""
    admin = AdminClient(kafka)
    admin.create_topics([NewTopic(name, 1)])[name].result(10)


def drop_topic(kafka: dict[str, Any], name: str) -> None:
    """Delete a topic."""
    admin = AdminClient(kafka)
    admin.delete_topics([name])[name].result(10)


def test_what_it_may_not_is_told(secure: Secure, start_harvest: StartHarvest) -> None:
    """A harvester without its ACLs says which it lacks, and where they are listed."""
    place = Place(secure.postgres, secure.kafka)
    harvester = secure.user(f"{place.name}-nobody")
    running = start_harvest(place.config(base_kafka=harvester))
    with pytest.raises(Exception, match=r"not allowed to .*kafka-acls\.sh .*--operation") as told:
        running.harvest.wait(20)
    assert harvester["sasl.password"] not in str(told.value)


def test_a_role_that_may_not_log_in(secure: Secure) -> None:
    """TLS alone opens nothing to a role that does not exist."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(secure.postgres.replace("postgres:", "nobody:", 1))
