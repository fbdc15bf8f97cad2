"""The leases of one candidate in PostgreSQL, over a connection that is made anew when it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from harvest_dagster.election import history, lease
from harvest_dagster.election.lease import Lease, Renewal
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import OutboxError

_CONNECT_SECONDS = 3
_LOCK = "1s"
_STATEMENT = "3s"
_SILENCE: dict[str, Any] = {
    "tcp_user_timeout": 3000,
    # For a machine that took the question, and vanished before it answered.
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
}

# A standby that was just promoted, or the primary that was, refuses writes for a while.
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
_Answer = TypeVar("_Answer")


class Registry:
    """Used by the candidate's thread alone; every call may block, each for a few seconds at most.

    It raises one of `UNAVAILABLE` when PostgreSQL can't answer; the next call connects again.
    """

    def __init__(self, settings: CandidateSettings, holder: str) -> None:
        self._settings, self._holder = settings, holder
        self._connection: psycopg.Connection[Any] | None = None

    def ready(self) -> None:
        """Make sure that PostgreSQL answers and has the schema."""
        self._ask(lambda connection: connection.execute(lease.SQL["ready"].text))

    def acquire(self, shard: int, seconds: float) -> Lease:
        """Take the lease of a shard under a new epoch, for what is left of Kafka's session."""
        of = self._settings
        return self._ask(
            lambda c: lease.acquire(c, of.name, shard, self._holder, seconds, of.outbox, of.shards)
        )

    def renew(self, held: Lease, seconds: float) -> tuple[Lease, Renewal]:
        """Put the end of a lease off, likewise; tell the lease as it is now."""
        renewal = self._ask(lambda c: lease.renew(c, held.name, held.shard, held.holder, seconds))
        return replace(held, epoch=renewal.epoch, leader_id=renewal.leader_id), renewal

    def revoked(self, held: Lease, reason: str) -> None:
        """Hand a lease back."""
        self._ask(
            lambda c: lease.release(
                c, held.name, held.shard, held.holder, "revoked", {"reason": reason}
            )
        )

    def fenced(self, held: Lease, reason: str) -> None:
        """Write down that a term was lost, whoever has the lease now."""
        detail = {"reason": reason}
        if not self._ask(
            lambda c: lease.release(c, held.name, held.shard, held.holder, "fenced", detail)
        ):
            detail["holder"] = held.holder
            self._ask(
                lambda c: history.record(
                    c, held.name, held.shard, held.epoch, held.leader_id, "fenced", detail
                )
            )

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, question: Callable[[psycopg.Connection[Any]], _Answer]) -> _Answer:
        try:
            return question(self._connected())
        except errors.LockNotAvailable:
            raise
        except UNAVAILABLE:
            self.close()
            raise
        except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName):
            raise OutboxError(
                "the schema harvest is missing or too old: run `harvest outbox migrate`"
            ) from None

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._settings.postgres_url,
                autocommit=True,
                application_name="harvest candidate",
                connect_timeout=_CONNECT_SECONDS,
                **_SILENCE,
            )
            patience = {"lock": _LOCK, "all": _STATEMENT}
            self._connection.execute(lease.SQL["patience"].text, patience)
        return self._connection
