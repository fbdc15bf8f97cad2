"""The lease of a shard: its row shows who leads, and its epoch fences whoever led before.

Who leads is decided by Kafka, where it is asked (`acquire`), or else by who comes first (`take`).
Neither takes a name that is led as another word: see `words`.

Each statement is a transaction, so that a client that is paused between two of them never holds a
lock. `acquire` and `refresh` change the epoch, and so wait for the writes that hold the row
FOR KEY SHARE; `renew`, `release` and `ask_to_resign` do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID, uuid4

import psycopg
from psycopg.errors import DeadlockDetected, UniqueViolation
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from harvest_dagster.errors import FencedError, RivalError
from harvest_dagster.ledger.events import NOTED
from harvest_dagster.ledger.words import OUTBOX, other_word
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.ledger", "lease.sql")
_ACQUIRE, _REFRESH, _RELEASE = (
    _SQL[name].sql(noted=NOTED) for name in ("acquire", "refresh", "release")
)


@dataclass(frozen=True, slots=True)
class Lease:
    """A term of leadership: a shard under one epoch."""

    name: str
    shard: int
    epoch: int
    leader_id: UUID
    holder: str


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a holder finds when it renews: the epoch as it is now, and whether it is to go."""

    epoch: int
    leader_id: UUID
    resign: bool


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease as the table has it, with its ages."""

    name: str
    word: str
    shard: int
    epoch: int
    leader_id: UUID
    holder: str
    acquired_at: datetime
    resign: bool
    acquired_seconds: float
    renewed_seconds: float
    expires_in_seconds: float
    expired: bool


class Veto(Protocol):
    """What a room has to say before one of its leases is taken; each call may block on PostgreSQL.

    Of two who acquire at the same moment neither sees the other yet. So both sign what they have
    taken, and then look again: at least one of them sees the other, and gives its own back.
    """

    def refuse(self, connection: psycopg.Connection[Any]) -> None:
        """Raise a RivalError where something is in the way of the lease."""

    def sign(self, connection: psycopg.Connection[Any], lease: Lease) -> None:
        """Write beside the lease what another's `refuse` looks for."""


def acquire(  # noqa: PLR0913 - the columns of a lease
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    holder: str,
    ttl_seconds: float,
    *,
    word: str = OUTBOX,
    veto: Veto | None = None,
) -> Lease:
    """Take the lease under the next epoch, whoever has it: Kafka has decided that already.

    Raise a RivalError where the name is led as another word, or the veto says so.
    """
    values = {"name": name, "shard": shard, "holder": holder, "ttl": ttl_seconds, "word": word}
    lease = _vetted(connection, {**values, "whoever": True}, veto)
    assert lease is not None  # noqa: S101 - whoever has it
    return lease


def take(  # noqa: PLR0913 - the columns of a lease
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    holder: str,
    ttl_seconds: float,
    *,
    word: str = OUTBOX,
    veto: Veto | None = None,
) -> Lease | None:
    """Take the lease under the next epoch if it has expired: who comes first has it.

    Return None while somebody has it, whose writes do not wait for this. Raise a RivalError where
    the name is led as another word, or the veto says so.
    """
    values = {"name": name, "shard": shard, "holder": holder, "ttl": ttl_seconds, "word": word}
    return _vetted(connection, {**values, "whoever": False}, veto)


def _vetted(
    connection: psycopg.Connection[Any], values: Mapping[str, Any], veto: Veto | None
) -> Lease | None:
    if veto is None:
        return _acquire(connection, values)
    veto.refuse(connection)
    lease = _acquire(connection, values)
    if lease is None:
        return None
    veto.sign(connection, lease)
    try:
        veto.refuse(connection)
    except RivalError as rival:
        reason = {"reason": str(rival)}
        release(connection, lease.name, lease.shard, lease.holder, "revoked", reason)
        raise
    return lease


# Of those who make the row at once, some are told so, or lock each other out, by the index that has
# the epoch, at which an upsert by (name, shard) does not look first.
@retry(
    retry=retry_if_exception_type((UniqueViolation, DeadlockDetected)),
    stop=stop_after_attempt(4),
    reraise=True,
)
def _acquire(connection: psycopg.Connection[Any], values: Mapping[str, Any]) -> Lease | None:
    with connection.cursor(row_factory=class_row(Lease)) as cursor:
        lease = cursor.execute(_ACQUIRE, values).fetchone()
    name, word = values["name"], values["word"]
    if lease is None and (other := other_word(connection, name, word)):
        raise RivalError(f"{name} is led as {other} here: give this {word} another name")
    return lease


def refresh(
    connection: psycopg.Connection[Any],
    lease: Lease,
    reason: str,
    tried: list[UUID] | None = None,
) -> Lease:
    """Begin a new epoch under the same holder, unless the lease has gone on without us.

    The lease's end stays as it was: to put it off takes a proof from Kafka, by the candidate.
    An answer may be lost though PostgreSQL wrote the new epoch. So `tried` remembers the leader ids
    that were asked for since `lease`: give the same list again, to go on from one that was written.
    """
    before = [] if tried is None else tried
    values = {**asdict(lease), "reason": reason}
    values |= {"tried": [*before], "next": uuid4()}
    before.append(values["next"])
    with connection.cursor(row_factory=class_row(Lease)) as cursor:
        refreshed = cursor.execute(_REFRESH, values).fetchone()
    if refreshed is None:
        raise FencedError(
            f"epoch {lease.epoch} of {lease.name}/{lease.shard} is over: nothing more may be"
            " written under it"
        )
    return refreshed


def renew(
    connection: psycopg.Connection[Any], name: str, shard: int, holder: str, ttl_seconds: float
) -> Renewal:
    """Put the lease's end off, whatever epoch its holder has brought it to; raise if it is lost."""
    values = {"name": name, "shard": shard, "holder": holder, "ttl": ttl_seconds}
    with connection.cursor(row_factory=class_row(Renewal)) as cursor:
        renewal = cursor.execute(_SQL["renew"].text, values).fetchone()
    if renewal is None:
        raise FencedError(f"the lease of {name}/{shard} is no longer {holder}'s")
    return renewal


def release(
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    holder: str,
    kind: Literal["revoked", "fenced"],
    detail: Mapping[str, object],
) -> bool:
    """End the lease now; return whether it was still this holder's."""
    values = {"name": name, "shard": shard, "holder": holder, "kind": kind}
    row = connection.execute(_RELEASE, {**values, "detail": Jsonb(dict(detail))})
    return row.fetchone() is not None


def ask_to_resign(connection: psycopg.Connection[Any], name: str, shard: int) -> bool:
    """Ask whoever holds the lease to go; return whether there is such a lease."""
    row = connection.execute(_SQL["ask_to_resign"].text, {"name": name, "shard": shard})
    return row.fetchone() is not None


def read(connection: psycopg.Connection[Any], name: str | None = None) -> list[LeaseRow]:
    """Read the leases of an outbox, or all."""
    with connection.cursor(row_factory=class_row(LeaseRow)) as cursor:
        return cursor.execute(_SQL["read"].text, {"name": name}).fetchall()


def ready(connection: psycopg.Connection[Any]) -> None:
    """Raise unless the table of leases is there."""
    connection.execute(_SQL["ready"].text)
