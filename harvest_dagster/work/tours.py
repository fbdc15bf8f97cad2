"""The rows of `harvest.tour`: what works in processes of their own say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.work", "tours.sql")
SILENT_SECONDS = 6.0
"""A tour tells twice a second: one that has been silent for so long is gone, or as good as gone."""


@dataclass(frozen=True, slots=True)
class TourRow:
    """A tour, as it said last; `done` is the first of its figures, of tours before it too."""

    name: str
    shard: int
    id: UUID
    epoch: int
    run: str
    done: int
    done_before: int
    figures: dict[str, int]
    figures_before: dict[str, int]
    held: dict[str, str]
    drain: bool
    started_seconds: float
    seen_seconds: float
    ended: bool

    @property
    def alive(self) -> bool:
        """Whether it runs, for all that can be known from here."""
        return not self.ended and self.seen_seconds < SILENT_SECONDS

    def figure(self, name: str) -> int:
        """Return one of its figures, and 0 for one that it does not have."""
        return self.figures.get(name, 0)

    def ever(self, name: str) -> int:
        """Return one of its figures that counts, with those of the tours before it."""
        return self.figure(name) + self.figures_before.get(name, 0)


@dataclass(frozen=True, slots=True)
class Word:
    """What is said to a tour, in answer to what it says: its lease, and whether it is to end."""

    drain: bool
    epoch: int
    holder: str
    expires_in_seconds: float

    @property
    def expired(self) -> bool:
        """Return whether the lease has run out; one that has is not renewed."""
        return self.expires_in_seconds <= 0


def begin(connection: psycopg.Connection[Any], lease: Lease, tour: UUID, run: str) -> bool:
    """Write a tour down in the place of the last; return whether its epoch still holds."""
    values = {"name": lease.name, "shard": lease.shard, "epoch": lease.epoch}
    return connection.execute(_SQL["begin"].text, {**values, "id": tour, "run": run}).rowcount > 0


def tell(  # noqa: PLR0913 - the columns of a tour
    connection: psycopg.Connection[Any],
    lease: Lease,
    tour: UUID,
    figures: Mapping[str, int],
    held: Mapping[str, str],
    *,
    done: int,
    ended: bool,
) -> Word | None:
    """Say how far a tour has come; return nothing if another tour has taken its place."""
    values = {"name": lease.name, "shard": lease.shard, "epoch": lease.epoch, "id": tour}
    said = {"figures": Jsonb(dict(figures)), "held": Jsonb(dict(held)), "done": done}
    with connection.cursor(row_factory=class_row(Word)) as cursor:
        return cursor.execute(_SQL["tell"].text, {**values, **said, "ended": ended}).fetchone()


def ask_to_drain(connection: psycopg.Connection[Any], name: str, shard: int) -> bool:
    """Ask the tour of a shard to end; return whether one runs."""
    return (
        connection.execute(_SQL["ask_to_drain"].text, {"name": name, "shard": shard}).rowcount > 0
    )


def lives(connection: psycopg.Connection[Any], name: str, shard: int) -> bool:
    """Return whether a tour of a shard runs."""
    return any(row.shard == shard and row.alive for row in read(connection, name))


def read(connection: psycopg.Connection[Any], name: str | None = None) -> list[TourRow]:
    """Read the tours of a name that is led, or all."""
    with connection.cursor(row_factory=class_row(TourRow)) as cursor:
        return cursor.execute(_SQL["read"].text, {"name": name}).fetchall()
