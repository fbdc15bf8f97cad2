"""Your transaction: how a statement of ours joins the one that the caller has begun.

A caller gives what the transaction runs on: SQLAlchemy's Session or Connection, psycopg's
connection or cursor, or the asynchronous twin of one. `join` and `ajoin` return the connection that
it runs on. Nothing here commits. A transaction is begun only on SQLAlchemy's side, as any statement
that SQLAlchemy executes begins one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from harvest_dagster.errors import TransactionError
from harvest_dagster.postgres.twin import done, result_of

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

Target: TypeAlias = (
    "Session | scoped_session[Any] | Connection | psycopg.Connection[Any] | psycopg.Cursor[Any]"
)
AsyncTarget: TypeAlias = (
    "AsyncSession | async_scoped_session[Any] | AsyncConnection"
    " | psycopg.AsyncConnection[Any] | psycopg.AsyncCursor[Any]"
)
PsycopgConnection: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any]"
PsycopgCursor: TypeAlias = "psycopg.Cursor[TupleRow] | psycopg.AsyncCursor[TupleRow]"
Joined: TypeAlias = "PsycopgConnection | Connection | AsyncConnection"
"""psycopg's own connection wherever there is one, or else SQLAlchemy's, with another driver."""


def join(target: Target, verb: str) -> Joined:
    """Return the connection of the caller's transaction; `verb` is what the caller has called."""
    if isinstance(target, psycopg.Cursor):
        target = target.connection
    if isinstance(target, psycopg.Connection):
        refuse_autocommit(target, verb)
        return target
    # SQLAlchemy takes a second to import: only who uses it waits for that.
    from harvest_dagster.postgres import target_sqlalchemy  # noqa: PLC0415

    return target_sqlalchemy.join(target, verb)


async def ajoin(target: AsyncTarget, verb: str) -> Joined:
    """Return it likewise, for a caller who awaits."""
    if isinstance(target, psycopg.AsyncCursor):
        target = target.connection
    if isinstance(target, psycopg.AsyncConnection):
        refuse_autocommit(target, verb)
        return target
    from harvest_dagster.postgres import target_sqlalchemy  # noqa: PLC0415 - as in `join`

    return await target_sqlalchemy.ajoin(target, verb)


def refuse_autocommit(connection: PsycopgConnection, verb: str) -> None:
    """Refuse a connection on which each statement would commit by itself."""
    if connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        raise TransactionError(
            f"{verb} needs your transaction, and this connection is in autocommit: begin one, for"
            f" example `with connection.transaction():`, around your writes and the {verb}"
        )


def cursor_on(connection: PsycopgConnection) -> PsycopgCursor:
    """Return a cursor of ours, whatever rows and statements the caller's own are made for."""
    if isinstance(connection, psycopg.Connection):
        return psycopg.Cursor(connection, row_factory=tuple_row)
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


async def rows(connection: Joined, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
    """Return the rows of one statement, whose parameters are written `%(name)s`."""
    if isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        cursor = cursor_on(connection)
        await done(cursor.execute(statement, parameters))
        return await result_of(cursor.fetchall())
    from harvest_dagster.postgres import target_sqlalchemy  # noqa: PLC0415 - as in `join`

    return await target_sqlalchemy.rows(connection, statement, parameters)
