"""Your transaction on SQLAlchemy: what `target` imports once it is given one.

Where the driver is psycopg 3 its own connection is joined. psycopg2, asyncpg and pg8000 are served
by SQLAlchemy's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.pool import PoolProxiedConnection

from harvest_dagster.errors import TransactionError
from harvest_dagster.postgres.target import Joined, refuse_autocommit
from harvest_dagster.postgres.twin import done, run

_PARAMETER = re.compile(r"%\((\w+)\)s")


def join(target: Session | scoped_session[Any] | Connection, verb: str) -> Joined:
    """Return the connection of a session's or connection's transaction."""
    if isinstance(target, Session | scoped_session):
        target = target.connection()
    if not isinstance(target, Connection):
        raise _no_target(verb, target)
    return run(_joined(target, verb, psycopg.Connection))


async def ajoin(
    target: AsyncSession | async_scoped_session[Any] | AsyncConnection, verb: str
) -> Joined:
    """Return it likewise, of an asynchronous session or connection."""
    if isinstance(target, AsyncSession | async_scoped_session):
        target = await target.connection()
    if not isinstance(target, AsyncConnection):
        raise _no_target(verb, target, "asynchronous ")
    return await _joined(target, verb, psycopg.AsyncConnection)


async def raw_of(connection: Connection | AsyncConnection) -> PoolProxiedConnection:
    """Return the pool's connection, which has the driver's."""
    if isinstance(connection, AsyncConnection):
        return await connection.get_raw_connection()
    return connection.connection


async def execute(
    connection: Connection | AsyncConnection,
    statement: sa.Executable,
    parameters: Mapping[str, object] | Sequence[Mapping[str, object]],
) -> sa.CursorResult[Any]:
    """Execute a statement on either kind of connection."""
    if isinstance(connection, AsyncConnection):
        return await connection.execute(statement, parameters)
    return connection.execute(statement, parameters)


async def rows(
    connection: Connection | AsyncConnection, statement: str, parameters: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    """Return the rows of one statement, whose parameters are written `%(name)s`."""
    text = _PARAMETER.sub(r":\1", statement.replace(":", r"\:")).replace("%%", "%")
    return [tuple(row) for row in await execute(connection, sa.text(text), parameters)]


async def _joined(
    connection: Connection | AsyncConnection,
    verb: str,
    kind: type[psycopg.Connection[Any] | psycopg.AsyncConnection[Any]],
) -> Joined:
    raw = await raw_of(connection)
    driver = raw.driver_connection
    if isinstance(driver, kind):
        if not connection.in_transaction():
            await done(connection.begin())  # as every statement that SQLAlchemy executes would
        refuse_autocommit(driver, verb)
        return driver
    if getattr(raw.dbapi_connection, "autocommit", False):
        raise TransactionError(
            f"{verb} needs your transaction, and this connection is in autocommit: begin one around"
            f" your writes and the {verb}, on an engine without isolation_level='AUTOCOMMIT'"
        )
    return connection


def _no_target(verb: str, target: object, kind: str = "") -> TransactionError:
    return TransactionError(
        f"{verb} needs your transaction, and {type(target).__name__} is not what one runs on: give"
        f" it SQLAlchemy's {kind}Session or Connection, or psycopg's {kind}connection or cursor"
    )
