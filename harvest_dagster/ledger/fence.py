"""The fence: a statement that begins `WITH {fence}` writes only while a term's epoch holds.

It holds a share lock on the lease's row for as long as it runs, so whoever takes the lease over
waits for it; and when the epoch has gone on, it finds no row, and writes nothing. This is the one
place where statements are scoped to a term: their files say `{fence}`, and `FROM fence` where they
write; those that read something back begin their row with how many fences they found, 1 or 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable
from psycopg.types.json import Jsonb

from harvest_dagster.errors import FencedError
from harvest_dagster.ledger.events import NOTED
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.statements import Statement, statements

_SQL = statements("harvest_dagster.ledger", "fence.sql")
FENCE = SQL(_SQL["fence"].text)
"""What stands for `{fence}` in a statement."""
_NOTE = _SQL["note"].sql(fence=FENCE, noted=NOTED)


def fenced(statement: Statement, **places: Any) -> Composable:  # noqa: ANN401 - as `sql` takes them
    """Return the statement with its fence, and with names in its other places."""
    return statement.sql(fence=FENCE, **places)


class Fence:
    """Runs the statements of one term; each call may block on PostgreSQL."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.parameters: dict[str, Any] = {
            "name": lease.name,
            "shard": lease.shard,
            "epoch": lease.epoch,
            "leader_id": lease.leader_id,
        }

    def over(self) -> FencedError:
        """Return the error that says that the term is over."""
        return FencedError(f"another leader has the lease: epoch {self.lease.epoch} is over")

    def row(
        self,
        connection: psycopg.Connection[Any],
        sql: Any,  # noqa: ANN401 - SQL of any kind
        **parameters: object,
    ) -> tuple[Any, ...]:
        """Return what a statement reads back behind its fence; raise if the term is over."""
        found = connection.execute(sql, {**self.parameters, **parameters}).fetchone()
        if not found or not found[0]:
            raise self.over()
        return tuple(found[1:])

    def write(
        self,
        connection: psycopg.Connection[Any],
        sql: Any,  # noqa: ANN401 - SQL of any kind
        **parameters: object,
    ) -> None:
        """Have a statement write its rows; raise if the term is over, and it wrote none."""
        if connection.execute(sql, {**self.parameters, **parameters}).rowcount == 0:
            raise self.over()

    def note(
        self, connection: psycopg.Connection[Any], kind: str, detail: Mapping[str, object]
    ) -> None:
        """Write an event down, unless the term is over."""
        values = {**self.parameters, "kind": kind, "detail": Jsonb(dict(detail))}
        connection.execute(_NOTE, values)
