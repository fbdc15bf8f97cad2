"""What a sequencer makes of a topic's records, from where Kafka has them to their ends of now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

from harvest_dagster.clock import Deadline
from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import KafkaError, ReaderError
from harvest_dagster.reader.intake import Intake, PartitionEnd, SecondLook
from harvest_dagster.reader.received import log_of, partition_of, sighted
from harvest_dagster.reader.source_topics import SourceTopics
from harvest_dagster.sequence.sequencer import Sequencer, Sighting
from harvest_dagster.sequence.tracing import outcome_of
from harvest_dagster.sequence.uuids import Flags

_SILENT_SECONDS = 30.0
_POLL_SECONDS = 0.5


def trace_topic(kafka: KafkaConfig, topic: str, ring: int) -> Iterator[dict[str, Any]]:
    """Yield for each record of a topic what it says, what became of it, and what counts then."""
    topics, group = SourceTopics(kafka), f"harvest-trace-{uuid4().hex}"
    lows = topics.lows(topics.look([topic])[topic].places)
    with (
        closing(Intake(kafka, group, lows)) as intake,
        closing(SecondLook(kafka, group)) as second_look,
    ):

        def reread(log: str, begin: int, end: int) -> Iterator[Sighting]:
            return map(sighted, second_look.read(partition_of(log), begin, end))

        sequencer = Sequencer(reread, ring)
        for record in _to_the_ends(intake, len(lows)):
            yield _traced(sequencer, record)


def _to_the_ends(intake: Intake, partitions: int) -> Iterator[Any]:
    ended, silent = set[Any](), Deadline(_SILENT_SECONDS)
    while len(ended) < partitions:
        if silent.over:
            raise KafkaError("the topic could not be read to its end: Kafka fell silent")
        record = intake.next(_POLL_SECONDS)
        if record is None:
            continue
        silent = Deadline(_SILENT_SECONDS)
        if isinstance(record, PartitionEnd):
            ended.add(record.place)
        else:
            yield record


def _traced(sequencer: Sequencer, record: Any) -> dict[str, Any]:  # noqa: ANN401 - confluent's
    place = {"journal": log_of(record.topic(), record.partition())}
    try:
        message = sighted(record)
    except ReaderError as error:
        return {**place, "begin": record.offset(), "error": str(error)}
    answer = outcome_of(sequencer, message)
    said = {
        "producer": _name(message),
        "clock": message.clock,
        "flags": _flags(message.flags),
        "begin": message.begin,
        "end": message.end,
    }
    emitted = [[_name(each), each.clock] for each in answer["emitted"]]
    return {**place, **said, **answer, "emitted": emitted}


def _name(message: Sighting) -> str | None:
    return message.producer.hex() if message.clock else None


def _flags(flags: int) -> str | int:
    return Flags(flags).name if flags in set(Flags) else flags
