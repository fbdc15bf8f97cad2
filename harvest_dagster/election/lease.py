"""The lease of a shard: its row makes Kafka's choice visible, and its epoch fences with it.

Each statement is a transaction, so that a client that is paused between two of them never holds a
lock. `acquire` and `refresh` change the epoch, and so wait for the writes that hold the row
FOR KEY SHARE; `renew`, `release` and `ask_to_resign` do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

import psycopg
from psycopg.errors import DeadlockDetected, UniqueViolation
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from harvest_dagster.errors import FencedError, RivalError
from harvest_dagster.postgres.statements import statements

SQL = statements("harvest_dagster.election", "lease.sql")
_TRIES = 3


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


def acquire(  # noqa: PLR0913, PLR0917 - the columns of a lease
    connection: psycopg.Connection[Any],
    name: str,
    shard: int,
    holder: str,
    ttl_seconds: float,
    outbox: str | None = None,
    shards: int | None = None,
) -> Lease:
    """Take the lease under the next epoch, whoever has it: Kafka has decided that already.

    Raise RivalError where another name's lease of the same table has not expired, or where the
    work by another number of shards has not ended. Two who acquire at once don't see each other
    yet, so each looks again behind itself, and gives its own back.
    """
    values = {"name": name, "shard": shard, "holder": holder, "ttl": ttl_seconds}
    values |= {"outbox": outbox, "shards": shards}
    lease = _acquire(connection, values)
    rival = _rival(connection, values)
    if rival is None:
        # If there is no lease, then that of a rival has expired since.
        return lease or acquire(connection, name, shard, holder, ttl_seconds, outbox, shards)
    if lease is not None:
        release(connection, name, shard, holder, "revoked", {"reason": "another leads its table"})
    raise RivalError(rival)


def _rival(connection: psycopg.Connection[Any], values: Mapping[str, object]) -> str | None:
    """Tell who or what is in the way."""
    if found := connection.execute(SQL["rival"].text, values).fetchone():
        other, whose = found
        return (
            f"{whose} leads the same table as {other}, so each message would be published twice:"
            " stop one of the two, or give both the same name"
        )
    if found := connection.execute(SQL["other_number"].text, values).fetchone():
        shard, shards = found
        return (
            f"shard {shard} of {shards} is still led, or has messages in flight, which"
            f" {values['shards']} shards would publish again: run with `shards: {shards}` until"
            " `harvest status` shows nothing in flight, stop that, and then change the number"
        )
    return None


def _acquire(connection: psycopg.Connection[Any], values: Mapping[str, object]) -> Lease | None:
    with connection.cursor(row_factory=class_row(Lease)) as cursor:
        for _ in range(_TRIES):
            # Of those who make the row at once, some are told so, or lock each other out, by the
            # index that has the epoch, at which an upsert by (name, shard) does not look first.
            with suppress(UniqueViolation, DeadlockDetected):
                return cursor.execute(SQL["acquire"].text, values).fetchone()
        return cursor.execute(SQL["acquire"].text, values).fetchone()


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
        refreshed = cursor.execute(SQL["refresh"].text, values).fetchone()
    if refreshed is None:
        raise FencedError(
            f"epoch {lease.epoch} of {lease.name}/{lease.shard} is over: nothing more may be"
            " written under it"
        )
    return refreshed


def renew(
    connection: psycopg.Connection[Any], name: str, shard: int, holder: str, ttl_seconds: float
) -> Renewal:
    """Put the lease's end off, whatever epoch its holder has brought it to."""
    values = {"name": name, "shard": shard, "holder": holder, "ttl": ttl_seconds}
    with connection.cursor(row_factory=class_row(Renewal)) as cursor:
        renewal = cursor.execute(SQL["renew"].text, values).fetchone()
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
    """End the lease now; tell whether it was still this holder's."""
    values = {"name": name, "shard": shard, "holder": holder, "kind": kind}
    row = connection.execute(SQL["release"].text, {**values, "detail": Jsonb(dict(detail))})
    return row.fetchone() is not None


def ask_to_resign(connection: psycopg.Connection[Any], name: str, shard: int) -> bool:
    """Ask whoever holds the lease to go; tell whether there is such a lease."""
    row = connection.execute(SQL["ask_to_resign"].text, {"name": name, "shard": shard})
    return row.fetchone() is not None


def read(connection: psycopg.Connection[Any], name: str | None = None) -> list[LeaseRow]:
    """Read the leases of an outbox, or all."""
    with connection.cursor(row_factory=class_row(LeaseRow)) as cursor:
        return cursor.execute(SQL["read"].text, {"name": name}).fetchall()
