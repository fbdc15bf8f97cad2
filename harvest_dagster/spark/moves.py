"""How what is staged becomes rows of a table, or messages of an outbox: the statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from harvest_dagster.errors import ConfigError, OutboxError
from harvest_dagster.postgres.names import TableName, quoted
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.commit import Move
from harvest_dagster.spark.messages import ORDER, MessageEncoder
from harvest_dagster.spark.staging import Column, Staged, Staging

_SQL = statements("harvest_dagster.spark", "commit.sql")
_JSON = {"json", "jsonb"}
_COMMA, _AND = SQL(", "), SQL(" AND ")


def messages_move(staging: Staging, encoder: MessageEncoder, staged: Sequence[Staged] = ()) -> Move:
    """Move messages into the outbox, in the order that was asked for."""
    names = [c.name for c in staging.columns if not c.name.startswith(ORDER)]
    values: list[Composable] = [*map(Identifier, names)]
    for name, value in staging.same:
        names, values = [*names, name], [*values, Literal(value)]
    if encoder.shape.wants_time:
        names, values = [*names, "create_time"], [*values, SQL("now()")]
    by = [c for c in staging.columns if c.name.startswith(ORDER)]
    order = SQL("ORDER BY {}").format(
        _COMMA.join(SQL("{}{} NULLS FIRST").format(Identifier(c.name), SQL(c.sorts_as)) for c in by)
    )
    insert = _SQL["messages"].sql(
        table=encoder.outbox.table,
        columns=_COMMA.join(map(Identifier, names)),
        values=_COMMA.join(values),
        staging=staging.table,
        order=order if by else SQL(""),
    )
    own = tuple(each for each in staged if each.own is not None)
    return Move(staging, encoder.outbox.table, insert, are_messages=True, own=own)


class TableMoves:
    """Moves into one business table, as its catalogue has it."""

    def __init__(self, connection: psycopg.Connection[Any], table: TableName) -> None:
        rows = connection.execute(_SQL["types"].text, (table.sql,)).fetchall()
        if not rows:
            raise OutboxError(f"there is no table {table}: create it, or mend the search path")
        self._table, self._types = table, dict(rows)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse columns that the table does not have."""
        for name in columns:
            if name not in self._types:
                raise ConfigError(
                    f"{self._table} has no column {name}; there are {', '.join(self._types)}"
                )

    @property
    def as_json(self) -> str:
        """Tell which columns are JSON, as the option wants it."""
        return json.dumps([name for name, type_ in self._types.items() if type_ in _JSON])

    def append(self, staging: Staging) -> Move:
        """Add the rows."""
        return self._move(staging, SQL(""))

    def upsert(self, staging: Staging, key: Sequence[str]) -> Move:
        """Add the rows whose key is new, and update the others."""
        rest = [column.name for column in staging.columns if column.name not in key]
        # Where all is key, it is updated to itself: to do nothing would not count the row.
        update = _COMMA.join(SQL("{0} = EXCLUDED.{0}").format(_name(name)) for name in rest or key)
        conflict = SQL("{} ON CONFLICT ({}) DO UPDATE SET {}").format(
            self._in_order(staging, key), _COMMA.join(map(_name, key)), update
        )
        return self._move(staging, conflict)

    def replace(self, staging: Staging, where: Mapping[str, Any]) -> Move:
        """Put the rows in the place of those where columns have these values."""
        condition = _AND.join(SQL("{} = %s").format(_name(name)) for name in where)
        vacate = _SQL["vacate"].sql(table=self._table, condition=condition)
        return self._move(staging, SQL(""), vacate, tuple(where.values()))

    def _move(
        self,
        staging: Staging,
        conflict: Composable,
        vacate: Any = None,  # noqa: ANN401 - a statement, or None
        place: tuple[Any, ...] = (),
    ) -> Move:
        insert = _SQL["rows"].sql(
            table=self._table,
            columns=_COMMA.join(_name(column.name) for column in staging.columns),
            values=_COMMA.join(self._value(column) for column in staging.columns),
            staging=staging.table,
            conflict=conflict,
        )
        return Move(staging, self._table, insert, are_messages=False, vacate=vacate, place=place)

    def _in_order(self, staging: Staging, key: Sequence[str]) -> Composable:
        """Have all writers take the rows of a table in one order, so that none is a deadlock."""
        by = sorted((c for c in staging.columns if c.name in key), key=lambda c: c.name)
        return SQL("ORDER BY {}").format(_COMMA.join(map(self._value, by))) if by else SQL("")

    def _value(self, column: Column) -> Composable:
        """Cast to the column's own type, whose length the insert then checks."""
        wanted = _escaped(self._types[column.name])
        return SQL("{}::{}").format(_name(column.name), wanted)


def _name(column: str) -> Composable:
    """Write a column's name for a statement that has parameters, where `%` begins one."""
    return _escaped(quoted(column))


def _escaped(text: str) -> Composable:
    return SQL(text.replace("%", "%%"))
