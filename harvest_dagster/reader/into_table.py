"""What a reader does with messages without any code: a statement for each, or a row for each.

    statement: INSERT INTO paid (id, cents) VALUES (%(key)s, %(value.cents)s)
    upsert: {table: orders, key: id}

Parameters of a statement are `key`, `value`, `value.<field>`, `headers.<name>`, `topic`,
`partition`, `offset`, `timestamp`, `uuid`, `published_at`. An upsert has a column for each field
of the JSON object; PostgreSQL makes the columns' types of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb
from pydantic import Field, field_validator

from harvest_dagster.errors import ConfigError, MessageError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.reader.read_batch import Apply, ReadBatch
from harvest_dagster.reader.received import ReceivedMessage
from harvest_dagster.work.checked import Checked

_SQL = statements("harvest_dagster.reader", "into_table.sql")
_OF_MESSAGE = ("topic", "partition", "offset", "timestamp", "uuid", "published_at")
_AT_ONCE = 500


class Upsert(Checked):
    """A table, and the columns by which a row is found again."""

    table: str
    """table, or schema.table"""
    key: tuple[str, ...] = Field(min_length=1)
    """the columns of a unique index: one, or a list"""

    @field_validator("key", mode="before")
    @classmethod
    def _are_several(cls, given: object) -> object:
        return (given,) if isinstance(given, str) else given

    @field_validator("table")
    @classmethod
    def _is_table(cls, value: str) -> str:
        try:
            return str(TableName.parse(value))
        except ConfigError as error:
            raise ValueError(str(error)) from None


def by_statement(statement: str) -> Apply:
    """Return what runs a statement for each message."""
    text = statement.encode()

    def apply(batch: ReadBatch) -> None:
        with batch.connection.cursor() as cursor:
            for some in _parts(batch.messages):
                cursor.executemany(text, [Parameters(message) for message in some])

    return apply


def by_upsert(upsert: Upsert) -> Apply:
    """Return what puts each message's fields into the columns of a row."""

    def apply(batch: ReadBatch) -> None:
        with batch.connection.cursor() as cursor:
            for some in _parts(batch.messages):
                rows = [(tuple(fields), fields) for fields in map(_fields, some)]
                for columns, alike in groupby(rows, key=lambda row: row[0]):
                    into = _into(upsert, columns)
                    cursor.executemany(into, [(Jsonb(fields),) for _, fields in alike])

    return apply


class Parameters(Mapping[str, Any]):
    """What a statement may name of a message; a field that the value does not have is NULL."""

    def __init__(self, message: ReceivedMessage) -> None:
        self._message = message

    @cached_property
    def _json(self) -> Any:  # noqa: ANN401 - JSON
        return None if self._message.value is None else _json(self._message.value)

    @cached_property
    def _headers(self) -> dict[str, bytes | None]:
        return dict(self._message.headers)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of whatever type it is
        first, _, rest = name.partition(".")
        if first == "value" and rest:
            return _adapted(_within(self._json, rest.split(".")))
        if first == "headers" and rest:
            return _text(self._headers.get(rest))
        if name in {"key", "value"}:
            return _text(getattr(self._message, name))
        if name in _OF_MESSAGE:
            return getattr(self._message, name)
        raise ConfigError(
            f"statement: there is no {name}; there are key, value, value.<field>, headers.<name>,"
            f" {', '.join(_OF_MESSAGE)}"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(("key", "value", *_OF_MESSAGE))

    def __len__(self) -> int:
        return 2 + len(_OF_MESSAGE)


def _parts(messages: Iterable[ReceivedMessage]) -> Iterator[list[ReceivedMessage]]:
    some: list[ReceivedMessage] = []
    for message in messages:
        some.append(message)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _fields(message: ReceivedMessage) -> dict[str, Any]:
    value = None if message.value is None else _json(message.value)
    if not isinstance(value, dict) or not value:
        raise MessageError("upsert: the value must be a JSON object with a field for each column")
    return value


def _into(upsert: Upsert, columns: tuple[str, ...]) -> Composed:
    missing = [key for key in upsert.key if key not in columns]
    if missing:
        raise MessageError(f"upsert: the value has no {', '.join(missing)}, which is of the key")
    names: Callable[[Iterable[str]], Composed] = lambda of: SQL(", ").join(map(Identifier, of))  # noqa: E731
    others = [column for column in columns if column not in upsert.key]
    changed = SQL(", ").join(SQL("{0} = EXCLUDED.{0}").format(Identifier(each)) for each in others)
    return _SQL["upsert"].sql(
        table=TableName.parse(upsert.table),
        columns=names(columns),
        key=names(upsert.key),
        then=SQL("UPDATE SET {}").format(changed) if others else SQL("NOTHING"),
    )


def _within(value: Any, path: list[str]) -> Any:  # noqa: ANN401 - JSON
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _adapted(value: Any) -> Any:  # noqa: ANN401 - JSON
    return Jsonb(value) if isinstance(value, dict | list) else value


def _json(value: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(value)
    except ValueError:
        raise MessageError("the value is no JSON") from None


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        raise MessageError("key, value and headers must be text in UTF-8") from None
