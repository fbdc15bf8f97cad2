"""How far a reader has come in each partition, as its store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harvest_dagster.sequence.states import Checkpoint

Partition: TypeAlias = "tuple[str, int]"
"""A topic, and the number of its partition."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader goes on in a partition, and the fence under which it may."""

    topic: str
    partition: int
    topic_id: str
    offset: int
    fence: int
    still_seconds: float
    """How long ago it was moved."""

    @property
    def place(self) -> Partition:
        """Which partition it is of."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Taken:
    """What somebody who begins to read goes on from."""

    positions: Mapping[Partition, Position]
    known: Mapping[str, Checkpoint]
    """What the sequencer is to know."""
