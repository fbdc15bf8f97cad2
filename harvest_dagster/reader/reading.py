"""A reading: one leader's reading of the partitions of one shard, from its lease to the end of it.

`run` reads round by round (see `read_round`) on the caller's thread. A round that failed because of
PostgreSQL or Kafka is begun anew after a pause. What `apply` raised is looked for message by
message, and ends the reading, as does whatever an operator must decide on. `drain`, `abort` and the
figures may be called from any other thread, and do not block.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

import psycopg
from confluent_kafka import KafkaException

from harvest_dagster.errors import FencedError, KafkaError, ReaderError
from harvest_dagster.kafka import refusals as kafka_refusals
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres import refusals
from harvest_dagster.postgres.connect import UNAVAILABLE, connect
from harvest_dagster.reader.applying import ApplyError, PassingError
from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import Apply
from harvest_dagster.reader.read_round import Control, Progress, ReadRound
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.text import counted, one_line
from harvest_dagster.work.led import Trusted

_log = logging.getLogger(__name__)
_PASSING = (PassingError, *UNAVAILABLE, KafkaException, KafkaError)
_PAUSE_SECONDS, _LONGEST_PAUSE = 0.5, 10.0


class Reading:
    """Reads the partitions of one shard for as long as its lease lasts."""

    def __init__(
        self,
        config: ReaderConfig,
        store: PostgresStore,
        apply: Apply,
        lease: Lease,
        trusted: Trusted,
    ) -> None:
        self._config, self._store, self._apply = config, store, apply
        self.lease = lease
        self.found: Mapping[str, int] | None = None
        self.held: Mapping[str, str] = {}
        self._control, self._progress = Control(trusted), Progress()
        self._ending = threading.Event()

    @property
    def figures(self) -> dict[str, int]:
        """What was done so far, and what is so just now."""
        return asdict(self._progress)

    def run(self) -> None:
        """Read until the lease ends; raise a FencedError if it was lost."""
        try:
            self._read()
        except ReaderError as stopped:
            self._record("stopped", {"reason": one_line(stopped)})
            raise
        if self._control.aborted:
            raise FencedError("the lease was lost")

    def drain(self, seconds: float) -> None:
        """Begin no other batch, and end behind the one that is under way."""
        del seconds  # whoever asks ends it when they are over, and the batch is read again
        self._control.ending = True
        self._ending.set()

    def abort(self) -> None:
        """End at once, without another write."""
        self._control.aborted = True
        self.drain(0)

    def _read(self) -> None:
        failures = alone = 0
        while not self._ending.is_set():
            current = ReadRound(
                self._config,
                self._store,
                self._apply,
                self.lease.shard,
                self._control,
                self._progress,
            )
            current.alone, batches = alone, self._progress.batches
            try:
                current.run(self._has_found)
                alone = current.alone
            except ApplyError as failure:
                alone = current.yielded
                many = counted(alone, "message")
                _log.warning("apply raised: %s; it gets these %s one by one", failure, many)
            except _PASSING as failure:
                alone = current.alone
                failures = 1 if self._progress.batches > batches else failures + 1
                self._pause(_explained(failure), failures)

    def _pause(self, reason: str, failures: int) -> None:
        _log.warning("the round ended early, and is begun anew: %s", reason)
        self.held = {self._config.name: reason}
        self._ending.wait(min(_PAUSE_SECONDS * 2 ** (failures - 1), _LONGEST_PAUSE))

    def _has_found(self, partitions: int) -> None:
        self.found, self.held = {"partitions": partitions}, {}

    def _record(self, kind: str, detail: dict[str, object]) -> None:
        with (
            suppress(psycopg.Error),
            connect(self._config.postgres_url, f"{self._config.name} event") as connection,
        ):
            Fence(self.lease).note(connection, kind, detail)


def _explained(failure: Exception) -> str:
    if isinstance(failure, psycopg.Error):
        return refusals.explained(failure)
    if isinstance(failure, KafkaException):
        return kafka_refusals.explained(failure)
    return one_line(failure)
