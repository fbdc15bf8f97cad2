"""A cluster of three."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from harvest_dagster import embedded
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def replicas(admin: AdminClient) -> list[int]:
    """Tell where the topic is, as the broker knows that we happen to ask."""
    partitions = admin.list_topics("replicated", timeout=10).topics["replicated"].partitions
    return sorted(partitions[0].replicas) if partitions else []


def test_three_brokers_replicate(home: Path, processes: Callable[[Path], list[str]]) -> None:
    """A topic has three replicas of which two must be in sync; all are gone after `down`."""
    servers = embedded.up(home, brokers=3)
    admin = AdminClient(servers.kafka_config)
    admin.create_topics([NewTopic("replicated", num_partitions=1)])["replicated"].result()
    resource = ConfigResource(ConfigResource.Type.TOPIC, "replicated")
    until(lambda: replicas(admin) == [1, 2, 3])
    settings = admin.describe_configs([resource])[resource].result()
    assert settings["min.insync.replicas"].value == "2"
    embedded.down(home)
    assert processes(home) == []
