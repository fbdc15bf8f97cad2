"""What is remembered of the producers of a log: enough to go on after any end, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harvest_dagster.sequence.ticks import span_of
from harvest_dagster.sequence.uuids import is_stable

NONE_OPEN = -1


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer as a checkpoint keeps it."""

    last_ack: int
    begin: int = NONE_OPEN
    """Where its open span begins in the log."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a log was read, and what is to be known of its producers to read on."""

    offset: int = 0
    producers: Mapping[bytes, Producer] = field(default_factory=dict)


def forgettable(producers: Mapping[bytes, Producer], horizon_ns: int) -> list[bytes]:
    """Return the producers of a log that may be forgotten: a double would come after the horizon.

    Who is stable, or has a span open, is never forgotten. A horizon of 0 forgets nobody.
    """
    if not horizon_ns or not producers:
        return []
    oldest = max(state.last_ack for state in producers.values()) - span_of(horizon_ns)
    return [
        producer
        for producer, state in producers.items()
        if state.last_ack < oldest and state.begin == NONE_OPEN and not is_stable(producer)
    ]
