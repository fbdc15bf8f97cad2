from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.backlog_metrics import HarvestCollector
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.work.metrics import served


@pytest.fixture
def harvest() -> Harvest:
    """A harvest of two shards that has not started."""
    return Harvest(
        HarvestConfig.model_validate(
            {
                "base_kafka": {"bootstrap.servers": "localhost:1"},
                "postgres": "host=localhost password=hunter2",
                "shards": 2,
            }
        )
    )


def test_before_the_start(harvest: Harvest) -> None:
    """Every figure of each shard is there from the beginning, but for what nobody knows yet."""
    registry = CollectorRegistry()
    registry.register(HarvestCollector(harvest))
    lines = generate_latest(registry).decode().splitlines()
    for name in ("published", "purged", "remarked", "parked"):
        assert f"# TYPE harvest_{name}_records_total counter" in lines
        for shard in "01":
            assert f'harvest_{name}_records_total{{name="outbox",shard="{shard}"}} 0.0' in lines
    assert 'harvest_leader{name="outbox",shard="1"} 0.0' in lines
    assert not any(line.startswith(("harvest_epoch{", "harvest_backlog")) for line in lines)


def test_health_of_one_that_does_not_run(harvest: Harvest) -> None:
    """A harvest that does not run is not sound."""
    with (
        served(harvest.runner, "127.0.0.1:0") as where,
        pytest.raises(urllib.error.HTTPError) as raised,
    ):
        urllib.request.urlopen(f"http://{where}/health", timeout=5)
    with raised.value as answer:
        assert answer.code == 503
        assert json.load(answer) == {"state": "created", "leader": False, "shards": []}


def test_ipv6(harvest: Harvest) -> None:
    """An address of IPv6 will do."""
    with (
        served(harvest.runner, "[::1]:0") as where,
        urllib.request.urlopen(f"http://{where}/metrics", timeout=5) as answer,
    ):
        assert b"harvest_leader" in answer.read()


def test_port_is_free_afterwards(harvest: Harvest) -> None:
    """While it serves the port is taken, and when it is over the port is free."""
    with served(harvest.runner, "127.0.0.1:0") as where:
        taken = served(harvest.runner, where)
        with pytest.raises(ConfigError, match="Address already in use"):
            taken.__enter__()
    with served(harvest.runner, where) as again:
        assert again == where
