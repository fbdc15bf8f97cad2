"""The statements that turn what was staged into rows of a table, or messages of an outbox."""

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
from harvest_dagster.spark.source_options import ATTACH_FROM
from harvest_dagster.spark.staging import Staged, StagedColumn, Staging

_SQL = statements("harvest_dagster.spark", "moves.sql")
_JSON = {"json", "jsonb"}
_COMMA, _AND = SQL(", "), SQL(" AND ")


def messages_move(
    staging: Staging,
    encoder: MessageEncoder,
    staged: Sequence[Staged] = (),
    attach_from: int = ATTACH_FROM,
) -> Move:
    """Return the move of messages into the outbox, in the order that was asked for."""
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
    return Move(
        staging,
        encoder.outbox.table,
        insert,
        are_messages=True,
        own=tuple(each for each in staged if each.own is not None),
        attach_from=attach_from,
    )


class TableMoves:
    """Moves into one business table, whose columns' types it knows from the catalogue."""

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
        """Return the names of the columns that are JSON, as the option `asJson` wants them."""
        return json.dumps([name for name, type_ in self._types.items() if type_ in _JSON])

    def append(self, staging: Staging) -> Move:
        """Return the move that adds the rows."""
        return self._move(staging, SQL(""))

    def upsert(self, staging: Staging, key: Sequence[str]) -> Move:
        """Return the move that adds the rows whose key is new, and updates the others."""
        rest = [column.name for column in staging.columns if column.name not in key]
        # If all columns are key, they are set to what they are: DO NOTHING does not count a row.
        update = _COMMA.join(SQL("{0} = EXCLUDED.{0}").format(_name(name)) for name in rest or key)
        conflict = SQL("{} ON CONFLICT ({}) DO UPDATE SET {}").format(
            self._in_order(staging, key), _COMMA.join(map(_name, key)), update
        )
        return self._move(staging, conflict)

    def replace(self, staging: Staging, where: Mapping[str, Any]) -> Move:
        """Return the move that puts the rows in the place of those that have these values."""
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
        """Return an ORDER BY the key: writers that take rows in one order make no deadlock."""
        by = sorted((c for c in staging.columns if c.name in key), key=lambda c: c.name)
        return SQL("ORDER BY {}").format(_COMMA.join(map(self._value, by))) if by else SQL("")

    def _value(self, column: StagedColumn) -> Composable:
        """Return the column, cast to its type but not its length, which the insert checks."""
        wanted = _escaped(self._types[column.name])
        return SQL("{}::{}").format(_name(column.name), wanted)


def _name(column: str) -> Composable:
    """Return a column's name for a statement with parameters, where `%` begins one."""
    return _escaped(quoted(column))


def _escaped(text: str) -> Composable:
    return SQL(text.replace("%", "%%"))
