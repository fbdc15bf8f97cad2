"""The clients of a round: a producer, a reader of committed batch numbers, connections."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from harvest_dagster.errors import ConfigError
from harvest_dagster.errors import KafkaError as OurKafkaError
from harvest_dagster.harvest.config import TRUST_MARGIN_SECONDS, HarvestConfig
from harvest_dagster.harvest.late_end import Ear
from harvest_dagster.kafka.refusals import explained
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.postgres.connect import connect as open_connection

_INIT_SECONDS = 30.0
_LARGEST = 1_000_000_000
_WAITS_MS = int(1000 * TRUST_MARGIN_SECONDS)
_TIMEOUTS = {"message.timeout.ms", "delivery.timeout.ms"}
_LINGER = {"linger.ms", "queue.buffering.max.ms"}
_LINGER_MS = 1
_COMPRESSION = ("compression.type", "compression.codec")
_TURNS = 2
"""How many producers take turns in `exactly_once`."""
_RETRY_MS = 2
"""Kafka sends a transaction away until its producer's last one has settled, which is a matter of
milliseconds: librdkafka's own 100 would be most of the time that a message takes."""
_PROPAGATION, _PROPAGATION_MS = "topic.metadata.propagation.max.ms", 1000
"""For so long a client believes in a topic that Kafka denies. Its own 30 s would hold up all other
topics; the marker asks again for one that is missing, and so needs no client's patience."""
_OWNED = {
    "transactional.id": "it fences the leader that was before, so it is made of the outbox's name",
    "enable.idempotence": "without it Kafka could double or reorder",
    "acks": "a message counts as published only when all in-sync replicas have it",
    "delivery.report.only.error": "it depends on the delivery",
    "on_delivery": "deliveries are the publisher's to count",
    "dr_cb": "deliveries are the publisher's to count",
}
_OWNED_SEQUENCED = dict.fromkeys(
    (*_TIMEOUTS, "enable.gapless.guarantee"),
    "a record that is given up would be missing before others, so the session ends instead",
)
_AGREED = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
"""What a user may say all the same, because it is what we say."""


class Batching(Enum):
    """How many records go to Kafka together: a topic's limit counts for all of them."""

    LARGE = "large"
    SMALL = "small"
    SINGLE = "single"


_BATCHES: dict[Batching, dict[str, int]] = {
    Batching.LARGE: {},
    Batching.SMALL: {"batch.size": 16_384},
    Batching.SINGLE: {"batch.num.messages": 1},
}


@dataclass(slots=True)
class Clients:
    """What one round publishes with; made anew for each, so that no old state is carried on.

    `hurries` says that a few records need not linger for others, since nobody asked them to.
    The `ear` hears of what forbids these producers another transaction.
    """

    producers: tuple[Producer, ...]
    group: Consumer
    admin: AdminClient
    hurries: bool
    faults: list[tuple[KafkaError, Message]] = field(default_factory=list)
    ear: Ear = field(default_factory=Ear)

    @classmethod
    def open(cls, config: HarvestConfig, shard: int, batching: Batching) -> Clients:
        """Make the clients; with transactions, fence and settle those of the last leader."""
        faults: list[tuple[KafkaError, Message]] = []
        ear = Ear()
        own = producer_settings(config) | _BATCHES[batching]
        if batching is not Batching.SINGLE and config.delivery == "sequenced":
            own["enable.gapless.guarantee"] = True  # else what is refused is known by its error
        base = {**config.base_kafka, **config.producer_kafka}
        if config.delivery == "exactly_once":
            own["on_delivery"] = lambda error, message: faults.append((error, message))
            own |= ear.settings(base)
        user = {k: v for k, v in base.items() if str(v).lower() not in _AGREED.get(k, ())}
        owned = _OWNED | _OWNED_SEQUENCED if config.delivery == "sequenced" else _OWNED
        producers = tuple(
            make(Producer, client_settings(user, own | more, owned))
            for more in _turns(config, shard)
        )
        group = {"group.id": f"{config.name}.harvest", "isolation.level": "read_committed"}
        consumer = make(Consumer, client_settings(config.base_kafka, group, {}))
        admin = make(AdminClient, client_settings(config.base_kafka, {}, {}))
        clients = cls(producers, consumer, admin, not _LINGER & user.keys(), faults, ear)
        if config.delivery == "exactly_once":
            clients.take_over()
        return clients

    def take_over(self) -> None:
        """Fence whoever published under these transactional ids before."""
        try:
            for producer in self.producers:
                producer.init_transactions(_INIT_SECONDS)
        except KafkaException as failure:
            self.close()
            raise OurKafkaError(
                f"Kafka did not hand over the transactions: {explained(failure)}"
            ) from failure

    def close(self) -> None:
        """Let go; what the producers still had is dropped, and never sent later."""
        for producer in self.producers:
            producer.purge()
            with suppress(KafkaException, SystemError):  # a fatal error that nobody heard of yet
                producer.flush(0)
        self.group.close()


def connect(config: HarvestConfig, what: str) -> psycopg.Connection[Any]:
    """Connect to PostgreSQL for a part of the harvest, whose statements walk the outbox."""
    connection = open_connection(
        config.postgres.get_secret_value(), f"{config.name} {what}", by_index=True
    )
    connection.prepare_threshold = 1
    return connection


def producer_settings(config: HarvestConfig) -> dict[str, Any]:
    """Return what we set of a producer, beside what the user sets."""
    own: dict[str, Any] = {"enable.idempotence": True, "acks": "all"}
    user = {**config.base_kafka, **config.producer_kafka}
    if "message.max.bytes" not in user:
        own["message.max.bytes"] = _LARGEST  # the topic's own limit is the one that counts
    if _PROPAGATION not in user:
        own[_PROPAGATION] = _PROPAGATION_MS
    if config.delivery == "exactly_once":
        own["delivery.report.only.error"] = True
        if not _LINGER & user.keys():
            own["linger.ms"] = 0  # a commit waits for all there is; more comes in the next one
        if "retry.backoff.ms" not in user:
            own["retry.backoff.ms"] = _RETRY_MS
    elif config.delivery == "sequenced":
        own["message.timeout.ms"] = 0
        own |= {} if _LINGER & user.keys() else {"linger.ms": _LINGER_MS}
    else:
        own |= _unfenced_settings(user, config.limits.session_seconds)
    return own


def is_compressed(config: HarvestConfig) -> bool:
    """Return whether the producer compresses what it sends."""
    settings = {**config.base_kafka, **config.producer_kafka}
    return any(str(settings.get(name, "none")) != "none" for name in _COMPRESSION)


def _turns(config: HarvestConfig, shard: int) -> list[dict[str, str]]:
    """Return what sets the producers apart: a transactional id, by which the next leader fences."""
    if config.delivery != "exactly_once":
        return [{}]
    return [{"transactional.id": f"{config.name}.{shard}.{turn}.harvest"} for turn in range(_TURNS)]


def _unfenced_settings(user: Mapping[str, object], session_seconds: float) -> dict[str, Any]:
    """Return the settings that keep order where Kafka fences nobody.

    A leader that is paused finds its client's queue as it was when it wakes, and the client would
    send it behind what the next leader has sent. So nothing may wait for longer than the time that
    a leader ceases to trust its lease before another can have it; if the user says otherwise, at
    least for less than a session. Nothing is lost by it: what timed out is sent again.

    The client counts this time from the moment that it is given a message. So what the user has it
    linger comes on top: what is left to Kafka for its answer would be too short, again and again.
    """
    own: dict[str, Any] = {} if _LINGER & user.keys() else {"linger.ms": _LINGER_MS}
    linger = max(_milliseconds(user, name, 0) for name in _LINGER)
    usual = linger + _WAITS_MS
    most = max(1000 * (session_seconds - TRUST_MARGIN_SECONDS), usual)
    given = [_milliseconds(user, name, 0) or most for name in _TIMEOUTS & user.keys()]
    waits = max(min([most, *given]) if given else usual, linger + 1)
    return own | dict.fromkeys(_TIMEOUTS & user.keys() or {"message.timeout.ms"}, int(waits))


def _milliseconds(user: Mapping[str, object], name: str, default: float) -> float:
    try:
        return float(str(user.get(name, default)))
    except ValueError:
        raise ConfigError(f"kafka: {name} must be a number of milliseconds") from None
