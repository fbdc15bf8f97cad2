"""The topics that a reader reads: whether they are still the same, how wide, and how long."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import KafkaError as ErrorCode
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import KafkaError, ReaderError
from harvest_dagster.kafka.refusals import explained
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.reader.positions import Partition

_ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic as Kafka has it."""

    name: str
    id: str
    partitions: int

    @property
    def places(self) -> list[Partition]:
        """Its partitions."""
        return [(self.name, number) for number in range(self.partitions)]


class Bounds(NamedTuple):
    """From where to where Kafka has a partition."""

    low: int
    high: int


class SourceTopics:
    """Asks Kafka of topics; each call blocks until it answers, and may raise a KafkaError."""

    def __init__(self, kafka: KafkaConfig) -> None:
        self._admin: AdminClient = make(AdminClient, client_settings(kafka, {}, {}))

    def look(self, topics: Collection[str]) -> dict[str, SourceTopic]:
        """Return the topics as they are now; raise a ReaderError where one is not there."""
        asked = self._admin.describe_topics(
            TopicCollection([*topics]), request_timeout=_ASK_SECONDS
        )
        return {topic: _topic(topic, answer) for topic, answer in asked.items()}

    def lows(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where Kafka has partitions from."""
        return self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def highs(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where partitions end."""
        return self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def bounds(self, place: Partition) -> Bounds:
        """Return from where to where Kafka has a partition."""
        return Bounds(self.lows([place])[place], self.highs([place])[place])

    def _offsets(self, places: Iterable[Partition], of: OffsetSpec) -> dict[Partition, int]:
        asked = {TopicPartition(*place): of for place in places}
        if not asked:
            return {}
        answers = self._admin.list_offsets(asked, request_timeout=_ASK_SECONDS)
        return {
            (each.topic, each.partition): _answer(answer, each.topic).offset
            for each, answer in answers.items()
        }


def _topic(name: str, answer: Future[Any]) -> SourceTopic:
    found = _answer(answer, name)
    return SourceTopic(name, str(found.topic_id), len(found.partitions))


def _answer(answer: Future[Any], topic: str) -> Any:  # noqa: ANN401 - what was asked for
    try:
        return answer.result()
    except KafkaException as error:
        if error.args[0].code() == ErrorCode.UNKNOWN_TOPIC_OR_PART:
            raise ReaderError(
                f"there is no topic {topic}: make it with `harvest topic create {topic}`, or take"
                " it off the reader's topics"
            ) from None
        raise KafkaError(f"Kafka did not tell of topic {topic}: {explained(error)}") from None
