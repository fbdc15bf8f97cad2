from __future__ import annotations

import pytest
from pydantic import SecretStr

from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.clients import Batching, Clients
from harvest_dagster.harvest.config import HarvestConfig


@pytest.mark.parametrize("name", ["linger.ms", "delivery.timeout.ms", "message.timeout.ms"])
def test_a_time_that_is_none(name: str) -> None:
    """At least once, a time that no number can be made of is refused by its name."""
    config = HarvestConfig(
        base_kafka={"bootstrap.servers": "localhost:9"},
        postgres=SecretStr("host=localhost"),
        delivery="at_least_once",
        producer_kafka={name: "soon"},
    )
    with pytest.raises(ConfigError, match=f"{name} must be a number of milliseconds"):
        Clients.open(config, 0, Batching.LARGE)
