"""A reader as something that is led: what the runner, the tours and the metrics know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harvest_dagster.config import KafkaConfig
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import Apply
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.reading import Reading
from harvest_dagster.work.led import Figure, Refreshed, Trusted

FIGURES = (
    Figure("applied", "Messages that were applied, each once"),
    Figure("read", "Records that were read"),
    Figure("doubles", "Doubles that were dropped", rare=True),
    Figure("replayed", "Records that were read again, for spans that the ring had lost", rare=True),
    Figure("batches", "Batches that were read", unit=""),
    Figure("lag", "Records that wait to be read", counts=False),
    Figure("open_spans", "Spans that nobody has settled yet", counts=False, unit=""),
)


@dataclass(frozen=True, slots=True)
class Readership:
    """The reader of one configuration, its store, and what it does with what it reads."""

    config: ReaderConfig
    store: PostgresStore
    apply: Apply = field(repr=False)
    figures: Sequence[Figure] = FIGURES

    @property
    def name(self) -> str:
        """What the reader is called."""
        return self.config.name

    @property
    def postgres_url(self) -> str:
        """Where the lease is; never print it."""
        return self.config.postgres_url

    @property
    def kafka(self) -> KafkaConfig:
        """Where its topics are."""
        return self.config.kafka

    @property
    def candidate(self) -> CandidateSettings:
        """How its leaders are elected: by Kafka, for shares of the partitions."""
        config = self.config
        return CandidateSettings(
            name=config.name,
            label=config.label,
            leader_topic=f"{config.group}.neli",
            leader_group=f"{config.group}.neli",
            postgres_url=self.postgres_url,
            kafka=config.kafka,
            shards=config.shards,
            drain_seconds=config.drain_timeout,
        )

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Reading:
        """Make the reading of a term; its store has fences of its own, so the lease stays as is."""
        del refreshed
        return Reading(self.config, self.store, self.apply, lease, trusted)


@dataclass(frozen=True, slots=True)
class ReaderName:
    """A reader that a program runs: enough of it to be seen and operated, not to be run here."""

    name: str
    postgres_url: str = field(repr=False)
    kafka: KafkaConfig = field(repr=False)
    figures: Sequence[Figure] = FIGURES

    @property
    def store(self) -> PostgresStore:
        """Where its positions are: where its lease is."""
        return PostgresStore(self.postgres_url)

    @property
    def candidate(self) -> CandidateSettings:
        """Raise a ConfigError: it is not known what is read."""
        raise ConfigError("give what is read, and what is done with it, by --file reader.yaml")

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Reading:
        """Raise a ConfigError likewise."""
        del lease, trusted, refreshed
        raise ConfigError("give what is read, and what is done with it, by --file reader.yaml")
