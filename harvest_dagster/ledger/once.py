"""A key that was written is not written again.

In one transaction `write_once`

1. takes the locks of the keys: of two writers of a key the second sees what the first did. They
   are those of the bare keys, which older versions take too;
2. reads what is known of the keys. They may be written already: by this very write, whose commit
   succeeded though nobody heard of it, or by another one, and then `on_repeat` decides;
3. writes, by the function that it was given;
4. records the keys.

A stream writes batch after batch under one key. A batch that it repeats is known by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.keys import bare, is_scoped, recorded
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.text import counted, printable

OnRepeat = Literal["skip", "again", "error"]
"""What becomes of a write whose key was written by another one."""

_SQL = statements("harvest_dagster.ledger", "once.sql")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Request:
    """A write that wants to be committed."""

    write: UUID
    """Tried again under the same id, a write is known as the same."""
    key: str | Sequence[str] | None
    """Several keys stand for several partitions, each of which may be written alone later."""
    outbox: TableName
    """The table that the keys belong to; bare ones are refused for another one."""
    on_repeat: OnRepeat = "skip"
    batch: int | None = None
    """The number of a stream's batch; they go up."""
    stream: str | None = None
    """The id that the stream's checkpoint gives it."""

    @property
    def keys(self) -> list[str]:
        """Return the keys; without any, one that nobody else has."""
        key = self.key if self.key is not None else str(self.write)
        return [key] if isinstance(key, str) else [*dict.fromkeys(key)]

    @property
    def bare_keys(self) -> list[str]:
        """Return the keys without their scopes."""
        return [*map(bare, self.keys)]

    @property
    def known_as(self) -> str:
        """Return the keys as an error shows them."""
        first, last = self.keys[0], self.keys[-1]
        return printable(first if first == last else f"{first} … {last}")


@dataclass(frozen=True, slots=True)
class Written:
    """What a write has done; `repeated` if it was done before, and nothing was written now."""

    write: UUID
    batch: int
    outbox: str
    messages: int
    first_id: int | None
    last_id: int | None
    tables: dict[str, int] = field(default_factory=dict)
    stream: str | None = None
    total: int = 0
    """How many messages have been stashed under the key, by all of its batches."""
    repeated: bool = False
    known_by: str | None = None
    """The key that it was found by in the ledger."""


@retry(
    retry=retry_if_exception_type((DeadlockDetected, SerializationFailure)),
    stop=stop_after_attempt(5),
    reraise=True,
)
def write_once(
    connection: psycopg.Connection[Any], request: Request, write: Callable[[Written], Written]
) -> Written:
    """Write, unless that was done before, and return what was written; block as long as it takes.

    `write` is given what is written before it begins, which is nothing, and returns that with what
    it has added. After a deadlock with another writer it is called again. All of it is part of the
    caller's transaction, if one has begun, or else a transaction of its own.
    """
    with connection.transaction():
        connection.execute(_SQL["lock"].text, (request.bare_keys,))
        known = last_written(connection, request)
        if known is not None and _is_repeated(known, request):
            return replace(known, repeated=True)
        begun = nothing(request)
        if known is not None and request.batch is None:
            begun = replace(begun, batch=known.batch + 1)
        written = write(begun)
        _record(connection, request, written)
    return written


def already_written(connection: psycopg.Connection[Any], request: Request) -> Written | None:
    """Return what was written if a request was done before; raise if it must not be asked for."""
    known = last_written(connection, request)
    return replace(known, repeated=True) if known and _is_repeated(known, request) else None


def last_written(connection: psycopg.Connection[Any], request: Request) -> Written | None:
    """Return the last write of a request's keys; raise if one is a key of another outbox."""
    sought = (request.keys, _recorded(connection, request), request.bare_keys, request.outbox.sql)
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_SQL["written"].text, sought).fetchall()
    found = {row.pop("asked"): Written(**row) for row in rows}
    for key, known in found.items():
        if known.known_by == key and known.outbox != str(request.outbox):
            _refuse_another(connection, known, request)
    if 0 < len(found) < len(request.keys) and request.on_repeat != "again":
        _refuse_some(request, [*found])
    return [*found.values()][-1] if found else None


def _recorded(connection: psycopg.Connection[Any], request: Request) -> list[str]:
    """Return the keys as the ledger records them, whatever name the outbox was asked for by."""
    if not any(map(is_scoped, request.keys)):
        return request.keys
    row = connection.execute(_SQL["full_name"].text, (request.outbox.sql,)).fetchone()
    outbox = row[0] if row else str(request.outbox)
    return [recorded(key, outbox) for key in request.keys]


def nothing(request: Request) -> Written:
    """Return what a request has written before it begins."""
    batch, outbox = request.batch or 0, str(request.outbox)
    return Written(request.write, batch, outbox, 0, None, None, stream=request.stream)


def _refuse_another(connection: psycopg.Connection[Any], known: Written, request: Request) -> None:
    names = (TableName.parse(known.outbox).sql, request.outbox.sql)
    row = connection.execute(_SQL["is_another"].text, names).fetchone()
    if row and row[0]:
        raise OutboxError(
            f"key: {request.known_as} was written with the outbox {known.outbox}, and"
            f" now comes {request.outbox}: a key belongs to one outbox; give another key"
        )


def _refuse_some(request: Request, found: list[str]) -> None:
    """Refuse what is written in part: to skip it would lose the rest, to write it would double."""
    keys = sorted(map(bare, found))
    more = f" and {len(keys) - _SHOWN:,} more" if len(keys) > _SHOWN else ""
    raise OutboxError(
        f"key: of the {len(request.keys):,} keys {request.known_as} some were written already:"
        f" {printable(', '.join(keys[:_SHOWN]))}{more}; write the others without these, or give"
        " onRepeat again, which writes all of them again"
    )


def _is_repeated(known: Written, request: Request) -> bool:
    """Return whether what is asked for was done; raise if it must not be asked for."""
    if known.write == request.write and request.batch in {None, known.batch}:
        return True
    if request.batch is not None:
        return _is_replayed(known, request, request.batch)
    if known.stream is not None:
        raise OutboxError(
            f"key: {request.known_as} is that of a stream; give this write another key"
        )
    if request.on_repeat == "error":
        raise OutboxError(
            f"key: {request.known_as} was written already, {counted(known.messages, 'message')}"
            f" and {counted(sum(known.tables.values()), 'row')}; give another key, or onRepeat skip"
            " or again"
        )
    return request.on_repeat == "skip"


def _is_replayed(known: Written, request: Request, batch: int) -> bool:
    """Return whether a stream's batch is the one that was written last.

    Batches of another stream have the same numbers, so a number is not enough.
    """
    is_other = known.stream != request.stream and (known.stream is not None or batch <= known.batch)
    if is_other or batch < known.batch:
        raise OutboxError(
            f"key: the stream {request.known_as} has committed batch {known.batch}, and"
            f" now comes batch {batch} of another checkpoint: go on from the right one, or begin"
            " anew under another key"
        )
    return batch == known.batch


def _record(connection: psycopg.Connection[Any], request: Request, written: Written) -> None:
    row = {**asdict(written), "tables": Jsonb(written.tables), "passing": request.key is None}
    keys = _recorded(connection, request)
    with connection.cursor() as cursor:
        cursor.executemany(_SQL["record"].text, [{**row, "key": key} for key in keys])
    connection.execute(_SQL["forget_passing"].text)
