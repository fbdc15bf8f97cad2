"""The commit: one transaction that moves what was staged, and records its key in the ledger.

Rows go first, then messages, as the moves are given. What is moved is counted: if PostgreSQL
crashed and so emptied an unlogged staging table, rows are missing, and nothing is written.

It runs on the driver, or in the process that Spark starts for a commit, and blocks for as long as
the move takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.sql import Composed

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.once import Request, Written, write_once
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark.parts import attach, attach_whole
from harvest_dagster.spark.source_options import ATTACH_FROM
from harvest_dagster.spark.staging import Staged, Staging, is_part, settled


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of a staging table: messages of an outbox, or rows of another table."""

    staging: Staging
    into: TableName
    insert: Composed
    are_messages: bool
    vacate: Composed | None = None
    place: tuple[Any, ...] = ()
    own: tuple[Staged, ...] = ()
    """What large tasks have staged in tables of their own."""
    attach_from: int = ATTACH_FROM
    """So many messages, or more, are attached as a table; fewer are moved."""


def commit(connection: psycopg.Connection[Any], request: Request, moves: Sequence[Move]) -> Written:
    """Move all that was staged, unless it was done before, and return what was written."""

    def move_all(written: Written) -> Written:
        for move in moves:
            written = _moved(connection, move, written)
        return written

    return write_once(connection, request, move_all)


def _moved(connection: psycopg.Connection[Any], move: Move, written: Written) -> Written:
    """Add a move to what is written; raise if rows are missing."""
    attempts, expected = settled(connection, move.staging)
    if move.vacate is not None:
        connection.execute(move.vacate, move.place)
    if move.are_messages:
        count, *ends = _messages(connection, move, attempts, expected)
        written = _with_messages(written, count, *ends)
        for staged in move.own:
            own = replace(move.staging, name=str(staged.own))
            written = _with_messages(
                written, staged.rows, *attach_whole(connection, own, move.into)
            )
    else:
        count = connection.execute(move.insert, (attempts,)).rowcount
        rows = written.tables.get(str(move.into), 0) + count
        written = replace(written, tables={**written.tables, str(move.into): rows})
    if count != expected:
        raise OutboxError(
            f"of {expected:,} rows staged for {move.into} there are {count:,}: PostgreSQL was"
            " restarted in the middle, or a trigger drops rows; nothing is written, write again"
        )
    return written


def _messages(
    connection: psycopg.Connection[Any], move: Move, attempts: list[int], expected: int
) -> Any:  # noqa: ANN401 - a row
    """Attach many messages, or move a few; return their number, the first id, and the last."""
    if expected >= move.attach_from and is_part(connection, move.staging):
        return attach(connection, move.staging, move.into, attempts, expected)
    return connection.execute(move.insert, (attempts,)).fetchone()


def _with_messages(written: Written, count: int, first: int | None, last: int | None) -> Written:
    firsts = [each for each in (written.first_id, first) if each is not None]
    lasts = [each for each in (written.last_id, last) if each is not None]
    return replace(
        written,
        messages=written.messages + count,
        first_id=min(firsts, default=None),
        last_id=max(lasts, default=None),
    )
