"""What the bench's candidates add to what their engine does, so that it is seen who did it when.

    messages      a header with the epoch under which each was produced, and, as its time, what the
                  candidate's own clock says: librdkafka would ask the machine's
    connections   the epoch, as a setting of the session, which the bench's triggers read

A round keeps the epoch that it began under, so what a deposed leader does late tells of itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from confluent_kafka import Producer

from harvest_dagster.harvest import clients, rounds
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.rounds import RoundRun
from tests.torture.plants import put
from tests.torture.proof import EPOCH

AHEAD_SECONDS = 3000.0
"""Kafka takes no message whose time is more than an hour ahead of its own."""
_SET = "SELECT set_config('torture.epoch', %s, false)"
_round = threading.local()


def stamp() -> None:
    """Have this process do that."""
    put(RoundRun, "run", _under_epoch(RoundRun.run))
    put(rounds, "connect", _telling(clients.connect))
    put(clients, "Producer", StampingProducer)


class StampingProducer(Producer):
    """A producer of one round, whose messages tell its epoch, and the time as Python has it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self._header = (EPOCH, str(_round.epoch).encode())

    def produce(self, topic: str, *given: Any, **more: Any) -> None:
        """Produce as the engine does it."""
        more["headers"] = [*(more["headers"] or ()), self._header]
        more["timestamp"] = stamped(time.time())
        super().produce(topic, *given, **more)


def stamped(wall: float) -> int:
    """Return in ms what a clock says that may have been moved, as far as Kafka believes it."""
    most = time.clock_gettime(time.CLOCK_REALTIME) + AHEAD_SECONDS
    return int(1000 * min(wall, most))


def _under_epoch(run: Callable[[RoundRun], None]) -> Callable[[RoundRun], None]:
    def run_under_epoch(self: RoundRun) -> None:
        _round.epoch = self._lease.epoch
        run(self)

    return run_under_epoch


def _telling(connect: Callable[..., psycopg.Connection[Any]]) -> Callable[..., Any]:
    def connect_and_tell(config: HarvestConfig, what: str) -> psycopg.Connection[Any]:
        connection = connect(config, what)
        connection.execute(_SET, (str(_round.epoch),))
        return connection

    return connect_and_tell
