"""Topics of our own: there, and wide enough, before a client counts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError as ErrorCode
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import KafkaError
from harvest_dagster.kafka.refusals import UnreachableError, explained, unreachable
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.text import counted

_REQUEST_SECONDS = 5.0
_PAUSE_SECONDS = 0.2
_CLUSTER_DEFAULT = -1
_FORBIDDEN = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_Answer = TypeVar("_Answer")


def ensure_topic(
    config: Mapping[str, object], topic: str, partitions: int, *, within_seconds: float = 15.0
) -> bool:
    """Create a topic that is missing; return whether it was. One that is too narrow is an error."""
    kafka = _Cluster(config, within_seconds)
    created = kafka.width(topic) is None and kafka.create(topic, partitions)
    while (width := kafka.width(topic)) is None:
        kafka.pause(f"the new topic {topic} does not show up")
    if width < partitions:
        raise KafkaError(
            f"the topic {topic} has {counted(width, 'partition')}, and {partitions} are needed:"
            f" add some with `{kafka.command(topic, partitions, '--alter')}`, or name another topic"
        )
    return created


def width(config: Mapping[str, object], topic: str, *, within_seconds: float) -> int | None:
    """Return how many partitions a topic has, and None where there is no such topic."""
    return _Cluster(config, within_seconds).width(topic)


def missing(
    config: Mapping[str, object], topics: Iterable[str], *, within_seconds: float
) -> list[str]:
    """Return which topics are not there, without making them; none where Kafka can't be asked."""
    try:
        kafka = _Cluster(config, within_seconds)
        return [topic for topic in topics if kafka.width(topic) is None]
    except KafkaError:
        return []


class _Cluster:
    """A cluster that is asked again, until a deadline, while it can't be reached."""

    def __init__(self, config: Mapping[str, object], within_seconds: float) -> None:
        self._servers = str(config.get("bootstrap.servers", ""))
        self._deadline = Deadline(within_seconds)
        self._causes: list[Any] = []
        extra = {"error_cb": self._causes.append, "log_level": 0}  # what it would log is heard
        self._admin: AdminClient = make(AdminClient, client_settings(config, extra, {}))

    def width(self, topic: str) -> int | None:
        """Return how many partitions a topic has, if it is there; asking never creates it."""
        try:
            found = self._ask(lambda seconds: self._describe(topic, seconds))
        except KafkaException as error:
            code = error.args[0].code()
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PART:
                return None
            if code in _FORBIDDEN:
                raise KafkaError(
                    f"not allowed to see the topic {topic}: {self._grant(topic, 'Describe')}"
                ) from None
            raise KafkaError(f"Kafka did not tell of topic {topic}: {explained(error)}") from None
        return len(found.partitions)

    def create(self, topic: str, partitions: int) -> bool:
        """Create a topic; return whether it was us."""
        try:
            self._ask(lambda seconds: self._create(topic, partitions, seconds))
        except KafkaException as error:
            code = error.args[0].code()
            if code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return False
            if code in _FORBIDDEN:
                raise KafkaError(
                    f"the topic {topic} is missing, and we are not allowed to create it: run"
                    f" `{self.command(topic, partitions, '--create')}`, or"
                    f" {self._grant(topic, 'Create')}"
                ) from None
            raise KafkaError(f"Kafka refused to create topic {topic}: {explained(error)}") from None
        return True

    def pause(self, trouble: str) -> None:
        """Wait before the next try, or give up."""
        if self._deadline.left <= _PAUSE_SECONDS:
            raise UnreachableError(unreachable(self._servers, self._causes, trouble))
        self._admin.poll(_PAUSE_SECONDS)

    def command(self, topic: str, partitions: int, what: str) -> str:
        """Write the command with which an operator does it."""
        return (
            f"kafka-topics.sh --bootstrap-server {self._servers} {what}"
            f" --topic {topic} --partitions {partitions}"
        )

    def _ask(self, question: Callable[[float], _Answer]) -> _Answer:
        while True:
            left = max(self._deadline.left, _PAUSE_SECONDS)
            try:
                return question(min(left, _REQUEST_SECONDS))
            except KafkaException as error:
                if not _passing(error):
                    raise
                self._admin.poll(0)  # what it says of its connections a timed-out request does not
                self.pause(explained(error))

    def _describe(self, topic: str, seconds: float) -> Any:  # noqa: ANN401 - TopicDescription
        asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=seconds)
        return asked[topic].result()

    def _create(self, topic: str, partitions: int, seconds: float) -> None:
        new = NewTopic(topic, partitions, _CLUSTER_DEFAULT)
        self._admin.create_topics([new], request_timeout=seconds)[topic].result()

    def _grant(self, topic: str, operation: str) -> str:
        return (
            f"grant it with `kafka-acls.sh --bootstrap-server {self._servers} --add"
            f" --allow-principal User:<user> --operation {operation} --topic {topic}`"
        )


def _passing(error: KafkaException) -> bool:
    """Return whether to ask again is worth while: the client's own troubles are below 0."""
    return bool(error.args[0].code() < 0 or error.args[0].retriable())
