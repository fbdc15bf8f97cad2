"""Staging: tables that tasks copy into, until one transaction makes what counts visible.

    driver    create()       makes a table, and remembers it in harvest.staged
    tasks     copy()         copies, each attempt under a number of its own: see `task`
    driver    settle()       notes the attempts whose tasks Spark has accepted
    driver    commit()       moves their rows, or attaches the tables themselves: see `parts`
    driver    drop()         drops the table

A task that fails, or is run twice, leaves rows under a number that is not noted, and they are not
moved. A later writer drops the tables of one that died. Tables that can't be attached are unlogged,
so PostgreSQL empties them when it crashes: the commit counts what it moves, and fails if rows are
missing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres import connect as postgres
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

SCHEMA = "harvest_staging"
_SQL = statements("harvest_dagster.spark", "staging.sql")
_STALL = postgres.Patience(silent=120)
"""A server whose disks are busy takes nothing of what a task copies, and to TCP looks as if it were
gone. So a task waits longer than others do."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What an attempt of a task has staged; `own` is its own table, if it has one."""

    attempt: int
    rows: int
    own: str | None = None


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column of a staging table; without a type, it has the type of the outbox's column."""

    name: str
    type: LiteralString | None = None
    sorts_as: LiteralString = ""

    def sql(self) -> Composable:
        """Return the column as the statement `create` wants it."""
        named = Identifier(self.name)
        return named if self.type is None else SQL("NULL::{} AS {}").format(SQL(self.type), named)


@dataclass(frozen=True, slots=True)
class Staging:
    """A staging table, and its columns beside the attempt."""

    name: str
    columns: tuple[StagedColumn, ...]
    same: tuple[tuple[str, str], ...] = ()
    """Columns that are not staged, and the value of each, which is the same in every row."""

    @property
    def table(self) -> TableName:
        """The table."""
        return TableName(self.name, SCHEMA)


@contextmanager
def connect(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect, from the driver or a task; each statement is a transaction of its own."""
    with postgres.connect(url, "spark", _STALL) as connection:
        # Whatever level a role or a database sets: moves must see what others have committed.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            yield connection
        except (
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedColumn,
            psycopg.errors.InvalidSchemaName,
        ) as error:
            if "harvest" not in str(error):
                raise
            if isinstance(error, psycopg.errors.UndefinedTable) and f"{SCHEMA}." in str(error):
                raise _gone(" ".join(str(error).split())) from None
            raise OutboxError(
                f"{' '.join(str(error).split())}: run `harvest outbox migrate`"
            ) from None


def new_name(write: UUID) -> str:
    """Return a name for a new staging table."""
    return f"{write.hex}_{secrets.token_hex(4)}"


def create(
    connection: psycopg.Connection[Any],
    write: UUID,
    staging: Staging,
    outbox: TableName | None,
    *,
    attaches: bool = False,
) -> None:
    """Create a staging table."""
    with connection.transaction():
        _create(connection, write, staging, outbox, attaches=attaches)


def ensure(
    connection: psycopg.Connection[Any], write: UUID, staging: Staging, outbox: TableName | None
) -> None:
    """Create a staging table, unless another task has done so."""
    with connection.transaction():
        connection.execute(_SQL["lock_name"].text, (staging.name,))
        row = connection.execute(_SQL["is_there"].text, (staging.name,)).fetchone()
        if row is None or not row[0]:
            _create(connection, write, staging, outbox, attaches=True)


def _create(
    connection: psycopg.Connection[Any],
    write: UUID,
    staging: Staging,
    outbox: TableName | None,
    *,
    attaches: bool,
) -> None:
    connection.execute(_SQL["register"].text, (staging.name, write))
    attachable = _attachable(connection, staging, outbox) if outbox and attaches else None
    if outbox is not None and attachable is not None:
        _create_part(connection, staging, outbox, attachable)
        return
    source = SQL("") if outbox is None else _SQL["source"].sql(table=outbox)
    columns = SQL(", ").join(column.sql() for column in staging.columns)
    connection.execute(_SQL["create"].sql(staging=staging.table, columns=columns, source=source))


@dataclass(frozen=True, slots=True)
class _Attachable:
    """An outbox that takes staging tables as parts."""

    sequence: str
    has_one_index: bool
    same: list[str]
    """The columns that the commit adds."""


def _attachable(
    connection: psycopg.Connection[Any], staging: Staging, outbox: TableName
) -> _Attachable | None:
    """Return how the staging table has to be made to become a part, or None if it can't."""
    if any(column.type is not None for column in staging.columns):
        return None  # since messages are moved if they are to be sorted
    names = {
        "outbox": outbox.sql,
        "staged": [column.name for column in staging.columns],
        "same": [name for name, _ in staging.same],
    }
    row = connection.execute(_SQL["attachable"].text, names).fetchone()
    return _Attachable(*row) if row and row[0] else None


def _create_part(
    connection: psycopg.Connection[Any],
    staging: Staging,
    outbox: TableName,
    attachable: _Attachable,
) -> None:
    indexes = SQL(_SQL["without_indexes"].text if attachable.has_one_index else "")
    part = _SQL["create_part"].sql(
        staging=staging.table,
        table=outbox,
        sequence=Literal(attachable.sequence),
        indexes=indexes,
    )
    connection.execute(part)
    for name, value in staging.same:
        default = _SQL["same"].sql(
            staging=staging.table, column=Identifier(name), value=Literal(value)
        )
        connection.execute(default)
    if attachable.same:
        dropped = SQL(", ").join(SQL("DROP {}").format(Identifier(n)) for n in attachable.same)
        connection.execute(_SQL["without"].sql(staging=staging.table, dropped=dropped))


def is_part(connection: psycopg.Connection[Any], staging: Staging) -> bool:
    """Return whether a staging table can be attached."""
    row = connection.execute(_SQL["is_part"].text, (staging.table.sql,)).fetchone()
    return bool(row and row[0])


def ensure_index(connection: psycopg.Connection[Any], table: TableName) -> None:
    """Index a table that may be attached, unless it was filled with its indexes."""
    row = connection.execute(_SQL["has_index"].text, (table.sql,)).fetchone()
    if row is None or not row[0]:
        connection.execute(_SQL["index"].sql(staging=table))


def settle(connection: psycopg.Connection[Any], staging: Staging, staged: Sequence[Staged]) -> None:
    """Note which attempts count, of those in the table of all tasks."""
    shared = [each for each in staged if each.own is None]
    rows = sum(each.rows for each in shared)
    attempts = [each.attempt for each in shared if each.rows]
    connection.execute(_SQL["settle"].text, (attempts, rows, staging.name))


def settled(connection: psycopg.Connection[Any], staging: Staging) -> tuple[list[int], int]:
    """Return the attempts that count, and how many rows they have staged."""
    found = connection.execute(_SQL["settled"].text, (staging.name,)).fetchone()
    if found is None:
        raise _gone(str(staging.table))
    return found[0], found[1]


def _gone(what: str) -> OutboxError:
    return OutboxError(
        f"what was staged is gone ({what}): the job did not end, or another write has cleaned up"
        " after days of silence; write again"
    )


def discard(connection: psycopg.Connection[Any], name: str) -> None:
    """Drop the staging tables of a write that is over, and end its tasks that still run."""
    end_tasks(connection, name)
    drop(connection, name)
    for (own,) in connection.execute(_SQL["own"].text, (name,)).fetchall():
        drop(connection, own)


def end_tasks(connection: psycopg.Connection[Any], name: str) -> None:
    """End tasks that still write to a staging table, though their write is over."""
    connection.execute(_SQL["end_tasks"].text, (TableName(name, SCHEMA).sql,))


def drop(connection: psycopg.Connection[Any], name: str) -> None:
    """Drop a staging table; leave one that a task still writes to for a later writer."""
    with suppress(psycopg.errors.LockNotAvailable), connection.transaction():
        connection.execute(_SQL["lock_time"].text)
        connection.execute(_SQL["drop"].sql(staging=TableName(name, SCHEMA)))
        forget(connection, name)


def forget(connection: psycopg.Connection[Any], name: str) -> None:
    """Forget a staging table that was dropped, or that became a part of the outbox."""
    connection.execute(_SQL["forget"].text, (name,))
