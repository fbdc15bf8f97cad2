"""A harvest as something that is led: what the runner, the tours and the metrics know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.harvest.config import TRUST_MARGIN_SECONDS, HarvestConfig
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.outbox.veto import OutboxVeto
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.names import TableName
from harvest_dagster.work.led import Figure, Led, Refreshed, Trusted

FIGURES = (
    Figure("published", "Records that Kafka has acknowledged"),
    Figure("purged", "Records that were removed from the outbox"),
    Figure("marked", "Records that were marked to be published"),
    Figure("remarked", "Records that were given up, and marked again", rare=True),
    Figure("parked", "Records that were set aside, because Kafka will never take them", rare=True),
    Figure("rounds", "Rounds that a tour has begun: one, and one more for each failure", unit=""),
    Figure("in_flight", "Records marked, and not purged yet", counts=False),
)


@dataclass(frozen=True, slots=True)
class Harvesting:
    """The harvest of one configuration."""

    config: HarvestConfig
    figures: Sequence[Figure] = FIGURES

    @property
    def name(self) -> str:
        """What the harvest is called."""
        return self.config.name

    @property
    def postgres_url(self) -> str:
        """Where PostgreSQL is; never print it."""
        return connection_string(self.config.postgres.get_secret_value())

    @property
    def candidate(self) -> CandidateSettings:
        """How its leader is elected: by Kafka, for a table that nobody else leads."""
        config, limits = self.config, self.config.limits
        session = limits.session_seconds
        return CandidateSettings(
            name=config.name,
            label=config.label,
            veto=OutboxVeto(config.name, table_of(self).sql, config.shards),
            leader_topic=config.leader_topic,
            leader_group=config.leader_group,
            postgres_url=self.postgres_url,
            kafka=config.base_kafka,
            shards=config.shards,
            session_timeout_ms=int(session * 1000),
            heartbeat_seconds=min(1.0, session / 6),
            margin_seconds=TRUST_MARGIN_SECONDS,
            drain_seconds=limits.drain_timeout,
        )

    def work(self, lease: Lease, trusted: Trusted, refreshed: Refreshed) -> Tour:
        """Make the tour of a term."""
        return Tour(self.config, lease, trusted, refreshed)


def table_of(led: Led) -> TableName:
    """Return the outbox's table of a harvest."""
    return TableName.parse(cast("Harvesting", led).config.outbox)
