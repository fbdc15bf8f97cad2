"""Forget what need not be kept any more: old events, requeued records, purged ones that were kept.

A round does that when it begins, and takes one portion, so that nobody waits for it who takes over.
A leader may lead on for months: so this does it now and then, on a thread that may block on
PostgreSQL, in a connection of its own.
"""

from __future__ import annotations

import logging
import time

import psycopg

from harvest_dagster.clock import Deadline
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.postgres.statements import statements

_log = logging.getLogger(__name__)
_TRIM = statements("harvest_dagster.harvest", "claims.sql")["trim"].text
_AT_ONCE_SECONDS = 1.0


class Trimmer:
    """Forgets for one outbox; used by one thread alone, which calls `trim` every few seconds."""

    def __init__(self, config: HarvestConfig, every_seconds: float = 3600.0) -> None:
        self._config, self._every_seconds = config, every_seconds
        self._next = 0.0

    def trim(self) -> None:
        """Take portions, if it is time to, for a second or so; go on at the next call."""
        if time.monotonic() < self._next:
            return
        try:
            if not self._portions():
                return
        except psycopg.Error as error:
            _log.warning("what is too old could not be removed: %s", explained(error))
        self._next = time.monotonic() + self._every_seconds

    def _portions(self) -> bool:
        """Return whether that was all."""
        config = self._config
        kept = {"days": config.event_days, "retention": config.retention or 0}
        deadline = Deadline(_AT_ONCE_SECONDS)
        with connect(config, "trim") as connection:
            while not deadline.over:
                row = connection.execute(_TRIM, {"name": config.name, **kept}).fetchone()
                if not row or not row[0]:
                    return True
        return False
