"""Stash by a driver other than psycopg 3, over SQLAlchemy.

psycopg2, asyncpg and pg8000 each have a COPY of their own; SQLAlchemy's batched INSERT serves them
all, only slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.stash_plan import StashPlan, forget_plans, make_plan, plan_of
from harvest_dagster.outbox.stash_stream import BATCH, Stream, taken
from harvest_dagster.outbox.table import Outbox, Shape
from harvest_dagster.postgres.target_sqlalchemy import execute, raw_of
from harvest_dagster.postgres.twin import entered


class _TypedText(sa.Text):
    """Text that says so: psycopg2's literals would turn into the bytes of a column that changed."""

    def bind_expression(self, bindvalue: sa.BindParameter[str]) -> sa.Cast[str]:
        """Cast each parameter."""
        return sa.cast(bindvalue, sa.Text())


async def stash(
    connection: Connection | AsyncConnection,
    messages: Message | Stream,
    outbox: Outbox,
    *,
    ids: bool,
) -> int | list[int]:
    """Stash one message or many."""
    if isinstance(messages, Message):
        found = await _insert(connection, [messages], outbox, ids=ids)
        return found if ids else 1
    count, found = 0, []
    async with entered(connection.begin_nested()):
        while batch := await taken(messages, BATCH):
            found += await _insert(connection, batch, outbox, ids=ids)
            count += len(batch)
    return found if ids else count


async def _insert(
    connection: Connection | AsyncConnection, batch: list[Message], outbox: Outbox, *, ids: bool
) -> list[int]:
    driver = (await raw_of(connection)).driver_connection
    try:
        plan = plan_of(driver, outbox) or await make_plan(driver, connection, outbox)
        insert, rows = _statement(plan), list(_rows(plan, batch))
        if not ids:
            await execute(connection, insert, rows)
            return []
        table_id = insert.table.c.id
        returning = insert.returning(table_id, sort_by_parameter_order=True)
        return list((await execute(connection, returning, rows)).scalars())
    except (sa.exc.DBAPIError, MessageError):
        forget_plans(driver)
        raise


def _rows(plan: StashPlan, batch: Iterable[Message]) -> Iterator[dict[str, Any]]:
    names = [name for name in plan.encoder.columns if name != "create_time"]
    for message in batch:
        yield dict(zip(names, plan.encoder.fields(message), strict=True))


def _statement(plan: StashPlan) -> sa.Insert:
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
