"""How a node of Kafka is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from harvest_dagster.embedded.home_state import HomeState
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.jars import folder_of
from harvest_dagster.embedded.kafka_node import KafkaNode
from harvest_dagster.embedded.part import Site


@pytest.mark.parametrize(
    ("given", "heap"),
    [(None, ["-Xmx512m"]), ("-Xms1g -Xmx1g", ["-Xms1g", "-Xmx1g"]), ("", [])],
)
def test_heap(
    given: str | None, heap: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heap is as Kafka's own variable has it, or small."""
    if given is None:
        monkeypatch.delenv("KAFKA_HEAP_OPTS", raising=False)
    else:
        monkeypatch.setenv("KAFKA_HEAP_OPTS", given)
    site = Site(tmp_path, HomeState(1, secure=False, ports={}))
    command = KafkaNode(1).command(site)
    assert [each for each in command if each.startswith("-Xm")] == heap


def test_jars_of_another_version(tmp_path: Path) -> None:
    """A node is run from the jars that it is given."""
    jars = Module("kafka-0.0", "Another Kafka")
    site = Site(tmp_path, HomeState(1, secure=False, ports={}))
    assert f"{folder_of(jars)}/*" in KafkaNode(1, jars).command(site)
