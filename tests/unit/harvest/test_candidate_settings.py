"""What the election is told of a harvest."""

from __future__ import annotations

from pydantic import SecretStr

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.outbox.veto import OutboxVeto


def test_the_table_is_told() -> None:
    """As PostgreSQL reads its name; by it a harvest of the same table is found."""
    config = HarvestConfig(
        base_kafka={"bootstrap.servers": "localhost:9"},
        postgres=SecretStr("host=localhost"),
        outbox='Shop."Out Box"',
    )
    veto = OutboxVeto(config.name, '"shop"."Out Box"', 1)
    assert Harvesting(config).candidate.veto == veto
