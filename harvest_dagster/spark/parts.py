"""Parts: the staging table of a large write becomes a part of the outbox, and no message is moved.

PostgreSQL lets a table inherit from another: a statement that reads or deletes from the outbox does
so in its parts as well. A staging table is made like the outbox, and its ids come from the outbox's
sequence. So the commit has only to index it and to attach it. To move the messages would write each
of them a second time.

A role that does not own the outbox can't attach. Nor is a table attached where triggers, row
security or a publication watch the outbox: they would miss it. Then messages are moved. Those of a
small write always are, since a leader has to look into each part. A later write drops a part when
it is drained.

The ids of a part are older than its commit, so a leader may have passed them: it sees that there is
a new part, and looks for what it has left behind. In a transaction with tables messages are moved,
because their ids must be drawn after its rows are written: if two transactions write one row, the
messages of the second must come later.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.staging import Staging, end_tasks, ensure_index, forget

_SQL = statements("harvest_dagster.spark", "parts.sql")
_PREFIX = "part_"


def attach(
    connection: psycopg.Connection[Any],
    staging: Staging,
    outbox: TableName,
    attempts: list[int],
    expected: int,
) -> tuple[int, int | None, int | None]:
    """Attach what counts; return the number of messages, the first id, and the last.

    The rows are not counted again: the table is logged, so no crash can lose them.
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
    """Attach a table whose rows all count; return the first id, and the last."""
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
