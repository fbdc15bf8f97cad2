"""Parts: what a large write has staged becomes a part of the outbox itself, without being moved.

PostgreSQL lets a table inherit from another: who reads or deletes from the outbox does so in its
parts as well. So a staging table that is made like the outbox, whose rows draw their ids from the
outbox's sequence, needs no more than its index, and to be attached, in the one transaction that
makes all visible. To move the messages would write each a second time, one by one.

A role that does not own the outbox can't attach; nor is it done where something else watches the
table: triggers, row security, a publication. Then messages are moved, as small writes always are,
since every part is one more place to look into until it is drained. A later write drops those.

The ids are older than the commit. So a leader may have gone beyond them: it sees that there is a
new part, and sweeps. And in a transaction with tables messages are moved, since their ids must be
drawn after its rows are written: where two transactions write one row, the second's come later.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.staging import Staging, end_tasks, ensure_index, forget

_SQL = statements("harvest_dagster.spark", "commit.sql")
_PREFIX = "part_"


def attach(
    connection: psycopg.Connection[Any],
    staging: Staging,
    outbox: TableName,
    attempts: list[int],
    expected: int,
) -> tuple[int, int | None, int | None]:
    """Attach what counts to the outbox; tell how many messages, the first id, and the last.

    The rows are not counted: unlike those of an unlogged table they can't be lost.
    """
    end_tasks(connection, staging.name)
    connection.execute(_SQL["lock_part"].sql(staging=staging.table))
    copied = _one(connection, _SQL["copied"].sql(), (staging.name,))[0]
    if copied > expected:
        lost = connection.execute(_SQL["lost"].sql(staging=staging.table), (attempts,)).rowcount
        copied -= lost
    ensure_index(connection, staging.table)
    return copied, *attach_whole(connection, staging, outbox)


def attach_whole(
    connection: psycopg.Connection[Any], staging: Staging, outbox: TableName
) -> tuple[int | None, int | None]:
    """Attach a table of which all counts; tell the first id, and the last."""
    first, last = _one(connection, _SQL["ends"].sql(staging=staging.table))
    names = {"outbox": outbox.sql, "part": staging.table.sql, "same": Jsonb(dict(staging.same))}
    (added,) = _one(connection, _SQL["lacks"].sql(), names)
    connection.execute(
        _SQL["attach"].sql(
            staging=staging.table,
            table=outbox,
            added=SQL(added),
            part=Identifier(_PREFIX + staging.name),
        )
    )
    forget(connection, staging.name)
    return first, last


def _one(connection: psycopg.Connection[Any], query: Composed, parameters: Any = None) -> Any:  # noqa: ANN401 - a row
    row = connection.execute(query, parameters).fetchone()
    assert row is not None  # noqa: S101 - it is an aggregate, or was looked up before
    return row
