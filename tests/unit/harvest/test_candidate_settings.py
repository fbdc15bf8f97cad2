"""What the election is told of a harvest."""

from __future__ import annotations

from pydantic import SecretStr

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import candidate_settings


def test_the_table_is_told() -> None:
    """As PostgreSQL reads its name; by it a harvest of the same table is found."""
    config = HarvestConfig(
        base_kafka={"bootstrap.servers": "localhost:9"},
        postgres=SecretStr("host=localhost"),
        outbox='Shop."Out Box"',
    )
    assert candidate_settings(config).outbox == '"shop"."Out Box"'
