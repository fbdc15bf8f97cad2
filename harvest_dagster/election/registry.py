"""The leases of one candidate in PostgreSQL, over a connection that is made anew when it breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable

from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger import candidates, events, lease
from harvest_dagster.ledger.lease import Lease, Renewal
from harvest_dagster.postgres.connect import OUTDATED, UNAVAILABLE, Patience, connect

_PATIENCE = Patience(connect=3, silent=3, lock=1, statement=3)
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
        self._ask(lease.ready)

    def acquire(self, shard: int, seconds: float) -> Lease | None:
        """Take the lease of a shard under a new epoch, for what is left of the session.

        Return None where Kafka is not asked, and somebody has it.
        """
        of, who = self._settings, self._holder
        take = lease.acquire if of.kafka else lease.take
        return self._ask(
            lambda c: take(c, of.name, shard, who, seconds, word=of.word, veto=of.veto)
        )

    def renew(self, held: Lease, seconds: float) -> tuple[Lease, Renewal]:
        """Put the end of a lease off, likewise; return the lease as it is now."""
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
        if not self._ask(
            lambda c: lease.release(
                c, held.name, held.shard, held.holder, "fenced", {"reason": reason}
            )
        ):
            self._ask(partial(_note_fenced, held=held, reason=reason))

    def stand(self, troubles: Sequence[str]) -> None:
        """Write down that this candidate stands, and what keeps it from leading."""
        of, who = self._settings, self._holder
        self._ask(lambda c: candidates.stand(c, of.name, who, troubles))

    def go(self) -> None:
        """Write down that it stands no more."""
        self._ask(lambda c: candidates.go(c, self._settings.name, self._holder))

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, question: Callable[[psycopg.Connection[Any]], _Answer]) -> _Answer:
        try:
            return question(self._connected())
        except LockNotAvailable:
            raise
        except UNAVAILABLE:
            self.close()
            raise
        except OUTDATED:
            raise OutboxError(
                "the schema harvest is missing or too old: run `harvest outbox migrate`"
            ) from None

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = connect(self._settings.postgres_url, "candidate", _PATIENCE)
        return self._connection


def _note_fenced(connection: psycopg.Connection[Any], held: Lease, reason: str) -> None:
    detail = {"reason": reason, "holder": held.holder}
    events.record(
        connection,
        held.name,
        held.shard,
        "fenced",
        detail,
        epoch=held.epoch,
        leader_id=held.leader_id,
    )
