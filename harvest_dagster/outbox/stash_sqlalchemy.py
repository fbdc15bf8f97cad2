"""Stash on SQLAlchemy's sessions and connections.

Where their driver is psycopg 3 the messages go straight to it. psycopg2, asyncpg and pg8000 each
have a COPY of their own; SQLAlchemy's batched INSERT serves them all, only slower.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from harvest_dagster.errors import MessageError, TransactionError
from harvest_dagster.outbox import stash_psycopg, stash_psycopg_async
from harvest_dagster.outbox.plan import (
    COLUMNS,
    RETURNING_BATCH,
    Plan,
    ain_batches,
    checked,
    forget_plans,
    in_batches,
    make_plan,
    plan_of,
)
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.table import Outbox, Shape


class _TypedText(sa.Text):
    """Text that says so: psycopg2's literals would turn into the bytes of a column that changed."""

    def bind_expression(self, bindvalue: sa.BindParameter[str]) -> sa.Cast[str]:
        """Cast each parameter."""
        return sa.cast(bindvalue, sa.Text())


def stash(
    target: Session | scoped_session[Any] | Connection,
    messages: Message | Iterable[Message],
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    """Stash on a session's or connection's driver."""
    connection = target if isinstance(target, Connection) else _of_session(target)
    driver = connection.connection.driver_connection
    if not isinstance(driver, psycopg.Connection):
        return _stash(connection, messages, outbox, ids=ids)
    if not connection.in_transaction():
        connection.begin()  # as every statement that SQLAlchemy itself executes would
    return stash_psycopg.stash(driver, messages, outbox, ids=ids)


async def astash(
    target: AsyncSession | async_scoped_session[Any] | AsyncConnection,
    messages: Message | AsyncIterator[Message],
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    """Stash on an asynchronous session's or connection's driver."""
    connection = target if isinstance(target, AsyncConnection) else await _of_asession(target)
    driver = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driver, psycopg.AsyncConnection):
        return await _astash(connection, messages, outbox, ids=ids)
    if not connection.in_transaction():
        await connection.begin()
    return await stash_psycopg_async.stash(driver, messages, outbox, ids=ids)


def _of_session(target: Session | scoped_session[Any]) -> Connection:
    if not isinstance(target, Session | scoped_session):
        raise TransactionError(_no_target("stash", target))
    return target.connection()


async def _of_asession(target: AsyncSession | async_scoped_session[Any]) -> AsyncConnection:
    if not isinstance(target, AsyncSession | async_scoped_session):
        raise TransactionError(_no_target("astash", target))
    return await target.connection()


def _no_target(name: str, target: object) -> str:
    kind = "" if name == "stash" else "asynchronous "
    return (
        f"{name} needs your transaction, and {type(target).__name__} is not what one runs on: give"
        f" it SQLAlchemy's {kind}Session or Connection, or psycopg's {kind}connection or cursor"
    )


def _stash(
    connection: Connection, messages: Message | Iterable[Message], outbox: Outbox, *, ids: bool
) -> int | list[int]:
    _refuse_autocommit(connection)
    if isinstance(messages, Message):
        found = _insert(connection, [messages], outbox, ids=ids)
        return found if ids else 1
    count, found = 0, []
    with connection.begin_nested():
        for batch in in_batches(checked(messages), RETURNING_BATCH):
            found += _insert(connection, batch, outbox, ids=ids)
            count += len(batch)
    return found if ids else count


async def _astash(
    connection: AsyncConnection,
    messages: Message | AsyncIterator[Message],
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    if isinstance(messages, Message):
        return await connection.run_sync(_stash, messages, outbox, ids=ids)
    await connection.run_sync(_refuse_autocommit)
    count, found = 0, []
    async with connection.begin_nested():
        async for batch in ain_batches(messages, RETURNING_BATCH):
            found += await connection.run_sync(_insert, batch, outbox, ids=ids)
            count += len(batch)
    return found if ids else count


def _insert(
    connection: Connection, batch: list[Message], outbox: Outbox, *, ids: bool
) -> list[int]:
    driver = connection.connection.driver_connection
    try:
        plan = plan_of(driver, outbox) or _look_up(connection, outbox)
        insert, rows = _statement(plan), list(_rows(plan, batch))
        if not ids:
            connection.execute(insert, rows)
            return []
        table_id = insert.table.c.id
        found = connection.execute(insert.returning(table_id, sort_by_parameter_order=True), rows)
        return list(found.scalars())
    except (sa.exc.DBAPIError, MessageError):
        forget_plans(driver)
        raise


def _look_up(connection: Connection, outbox: Outbox) -> Plan:
    query = sa.text(COLUMNS.replace("%s", ":table"))
    rows = connection.execute(query, {"table": outbox.table.sql})
    return make_plan(connection.connection.driver_connection, outbox, [tuple(r) for r in rows])


def _rows(plan: Plan, batch: Iterable[Message]) -> Iterator[dict[str, Any]]:
    names = [name for name in plan.encoder.columns if name != "create_time"]
    for message in batch:
        yield dict(zip(names, plan.encoder.fields(message), strict=True))


def _statement(plan: Plan) -> sa.Insert:
    columns = [sa.Column(name, _type(plan.shape, name)) for name in plan.encoder.columns]
    key = sa.Column("id", sa.BigInteger, primary_key=True)
    name = plan.outbox.table
    insert = sa.Table(name.table, sa.MetaData(), key, *columns, schema=name.schema).insert()
    return insert.values(create_time=sa.func.now()) if plan.encoder.wants_time else insert


def _type(shape: Shape, name: str) -> sa.types.TypeEngine[Any]:
    if name == "create_time":
        return sa.DateTime(timezone=True)
    if name == "kafka_partition":
        return sa.Integer()
    plain = _TypedText() if shape.is_text(name) else sa.LargeBinary()
    return ARRAY(plain) if name.startswith("kafka_header") else plain


def _refuse_autocommit(connection: Connection) -> None:
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise TransactionError(
            "stash needs your transaction, and this connection is in autocommit: begin one around"
            " your writes and the stash, on an engine without isolation_level='AUTOCOMMIT'"
        )
