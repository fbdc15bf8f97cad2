"""The commit: one transaction that moves what was staged, and remembers under which key.

1. take the locks of its keys, so that of two writers of one key the second sees what the first did;
2. look whether it is written already: by this very write (Spark may ask twice), or by another one
   (then `on_repeat` decides);
3. move rows, then move or attach messages, and count: what a crash of PostgreSQL took from
   unlogged staging tables would be missed here, and nothing is written;
4. record the keys.

It runs on the driver, or in the process that Spark starts for a commit, and blocks for as long as
the move takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.rows import class_row
from psycopg.sql import Composed
from psycopg.types.json import Jsonb

from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements
from harvest_dagster.spark.options import ATTACH_FROM, OnRepeat
from harvest_dagster.spark.parts import attach, attach_whole
from harvest_dagster.spark.staging import Staged, Staging, is_part, settled
from harvest_dagster.text import printable

_SQL = statements("harvest_dagster.spark", "commit.sql")
_SHOWN = 5
_TRIES = 5


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


@dataclass(frozen=True, slots=True)
class Request:
    """A write that wants to be committed."""

    write: UUID
    key: str | Sequence[str] | None
    """Several, where it is of several partitions, each of which may come alone another time."""
    outbox: TableName
    on_repeat: OnRepeat = "skip"
    attach_from: int = ATTACH_FROM
    batch: int | None = None
    """Of a stream, which goes through its batches one by one."""
    stream: str | None = None
    """Which stream, by the id that its checkpoint gives it."""

    @property
    def keys(self) -> list[str]:
        """Tell the keys, if need be one that nobody else has."""
        key = self.key if self.key is not None else str(self.write)
        return [key] if isinstance(key, str) else [*dict.fromkeys(key)]

    @property
    def known_as(self) -> str:
        """Tell the keys as an error shows them."""
        first, last = self.keys[0], self.keys[-1]
        return printable(first if first == last else f"{first} … {last}")


@dataclass(frozen=True, slots=True)
class Written:
    """What a write has done; `repeated` if it was done already, and nothing was written now."""

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


def commit(connection: psycopg.Connection[Any], request: Request, moves: Sequence[Move]) -> Written:
    """Write all of it, or tell that it is written; try again if another writer was in its way."""
    for _ in range(_TRIES - 1):
        with suppress(DeadlockDetected, SerializationFailure):
            return _commit(connection, request, moves)
    return _commit(connection, request, moves)


def _commit(
    connection: psycopg.Connection[Any], request: Request, moves: Sequence[Move]
) -> Written:
    with connection.transaction():
        connection.execute(_SQL["lock"].text, (request.keys,))
        known = last_written(connection, request)
        if known is not None and is_repeated(known, request):
            return replace(known, repeated=True)
        written = _moved(connection, request, moves)
        if known is not None and request.batch is None:
            written = replace(written, batch=known.batch + 1)
        _record(connection, request, written)
    return written


def last_written(connection: psycopg.Connection[Any], request: Request) -> Written | None:
    """Tell the last write of a request's keys; raise if one is a key of another outbox."""
    with connection.cursor(row_factory=class_row(Written)) as cursor:
        found = cursor.execute(_SQL["written"].text, (request.keys,)).fetchall()
    for known in found:
        if known.outbox != str(request.outbox):
            _refuse_another(connection, known, request)
    if 0 < len(found) < len(request.keys) and request.on_repeat != "again":
        _refuse_some(connection, request)
    return found[-1] if found else None


def _refuse_another(connection: psycopg.Connection[Any], known: Written, request: Request) -> None:
    names = (TableName.parse(known.outbox).sql, request.outbox.sql)
    row = connection.execute(_SQL["is_another"].text, names).fetchone()
    if row and row[0]:
        raise OutboxError(
            f"key: {request.known_as} was written with the outbox {known.outbox}, and"
            f" now comes {request.outbox}: a key belongs to one outbox; give another key"
        )


def _refuse_some(connection: psycopg.Connection[Any], request: Request) -> None:
    """Refuse what is written in part: to skip it would lose the rest, to write it would double."""
    keys = [key for (key,) in connection.execute(_SQL["known"].text, (request.keys,))]
    more = f" and {len(keys) - _SHOWN:,} more" if len(keys) > _SHOWN else ""
    raise OutboxError(
        f"key: of the {len(request.keys):,} keys {request.known_as} some were written already:"
        f" {printable(', '.join(keys[:_SHOWN]))}{more}; write the others without these, or give"
        " onRepeat again, which writes all of them again"
    )


def is_repeated(known: Written, request: Request) -> bool:
    """Tell whether what is asked for was done, or raise if it should not be asked for."""
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
            f"key: {request.known_as} was written already, {known.messages:,} messages"
            f" and {sum(known.tables.values()):,} rows; give another key, or onRepeat skip or again"
        )
    return request.on_repeat == "skip"


def _is_replayed(known: Written, request: Request, batch: int) -> bool:
    """Tell whether it is the batch that was written last; a number alone would not tell."""
    is_other = known.stream != request.stream and (known.stream is not None or batch <= known.batch)
    if is_other or batch < known.batch:
        raise OutboxError(
            f"key: the stream {request.known_as} has committed batch {known.batch}, and"
            f" now comes batch {batch} of another checkpoint: go on from the right one, or begin"
            " anew under another key"
        )
    return batch == known.batch


def nothing(request: Request) -> Written:
    """Tell what a request has written before it has moved anything."""
    batch, outbox = request.batch or 0, str(request.outbox)
    return Written(request.write, batch, outbox, 0, None, None, stream=request.stream)


def _moved(connection: psycopg.Connection[Any], request: Request, moves: Sequence[Move]) -> Written:
    written = nothing(request)
    for move in moves:
        attempts, expected = settled(connection, move.staging)
        if move.vacate is not None:
            connection.execute(move.vacate, move.place)
        if move.are_messages:
            count, first, last = _messages(connection, request, move, attempts, expected)
            written = _with_messages(written, count, first, last)
            for staged in move.own:
                ends = attach_whole(
                    connection, replace(move.staging, name=str(staged.own)), move.into
                )
                written = _with_messages(written, staged.rows, *ends)
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
    connection: psycopg.Connection[Any],
    request: Request,
    move: Move,
    attempts: list[int],
    expected: int,
) -> Any:  # noqa: ANN401 - a row
    """Attach many messages, or move a few; tell how many there are, the first id, and the last."""
    if expected >= request.attach_from and is_part(connection, move.staging):
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


def _record(connection: psycopg.Connection[Any], request: Request, written: Written) -> None:
    row = {**asdict(written), "tables": Jsonb(written.tables), "passing": request.key is None}
    with connection.cursor() as cursor:
        cursor.executemany(_SQL["record"].text, [{**row, "key": key} for key in request.keys])
    connection.execute(_SQL["forget_passing"].text)
