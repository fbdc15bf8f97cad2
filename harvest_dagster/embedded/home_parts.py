"""Which parts a home has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harvest_dagster.embedded import added
from harvest_dagster.embedded.kafka_node import KafkaNode
from harvest_dagster.embedded.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.part import Part

BROKERS = (1, 3)


def parts_of(state: HomeState) -> list[Part]:
    """Return the parts of a home."""
    return _parts(state.nodes, state.parts)


def all_parts() -> list[Part]:
    """Return all parts that any home may have."""
    return _parts(range(1, max(BROKERS) + 1), added.OFFERED)


def _parts(nodes: Iterable[int], names: Iterable[str]) -> list[Part]:
    return [PostgresServer(), *map(KafkaNode, nodes), *map(added.load, names)]
