"""A message as a reader's user sees it, and as the sequencer does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from harvest_dagster.errors import MessageError, ReaderError
from harvest_dagster.sequence import uuids
from harvest_dagster.sequence.sequencer import Sighting
from harvest_dagster.sequence.ticks import unix_ns
from harvest_dagster.sequence.uuids import HEADER

_SECOND_NS = 1_000_000_000
_SECOND_MS = 1000


class ReceivedMessage(NamedTuple):
    """A message that counts, where it stands, and by what it is known."""

    topic: str
    partition: int
    offset: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: datetime | None = None
    """Kafka's, in UTC."""
    identity: bytes | None = None
    """Its UUID as it stands in its header; of None it is known by its offset."""

    @property
    def uuid(self) -> UUID | None:
        """Its UUID."""
        return None if self.identity is None else UUID(bytes=self.identity)

    @property
    def published_at(self) -> datetime | None:
        """When it was given its UUID, in UTC."""
        if self.identity in {None, uuids.NIL}:
            return None
        clock = uuids.read(self.identity or b"").clock
        return datetime.fromtimestamp(unix_ns(clock) / _SECOND_NS, UTC)


def log_of(topic: str, partition: int) -> str:
    """Return what the sequencer calls a partition."""
    return f"{topic}/{partition}"


def partition_of(log: str) -> tuple[str, int]:
    """Return which partition the sequencer calls so."""
    topic, _, partition = log.rpartition("/")
    return topic, int(partition)


def sighted(record: Any, *, required: bool = False) -> Sighting:  # noqa: ANN401 - confluent's Message
    """Return a record as the sequencer sees it; raise a ReaderError where its UUID is none."""
    headers = record.headers()
    identity = next((v for k, v in reversed(headers or ()) if k == HEADER), None)
    topic, partition, offset = record.topic(), record.partition(), record.offset()
    if identity is None:
        if required:
            raise ReaderError(
                f"{topic}, partition {partition}, offset {offset}: the record has no header"
                f" {HEADER}, and uuid is `required`; have it be `optional`, or read on behind"
                " it with `harvest reader reset`"
            )
        identity = uuids.NIL
    try:
        producer, clock, flags = uuids.read(identity)
    except MessageError as error:
        raise ReaderError(
            f"{topic}, partition {partition}, offset {offset}: its header {HEADER} is no UUID:"
            f" {error}; read on behind it with `harvest reader reset`"
        ) from None
    return Sighting(log_of(topic, partition), producer, clock, flags, offset, offset + 1, record)


def received(seen: Sighting) -> ReceivedMessage:
    """Return a message that counts as its user sees it."""
    record = seen.body
    headers = tuple(record.headers() or ())
    kind, at = record.timestamp()
    identity = next((v for k, v in reversed(headers) if k == HEADER), None)
    return ReceivedMessage(
        record.topic(),
        record.partition(),
        record.offset(),
        record.key(),
        record.value(),
        headers,
        None if kind == TIMESTAMP_NOT_AVAILABLE else datetime.fromtimestamp(at / _SECOND_MS, UTC),
        identity,
    )
