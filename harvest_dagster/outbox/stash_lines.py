"""Stash JSON lines: a line that is wrong is named by its number, and then nothing is stashed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import psycopg

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.lines import LineReader
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.rows import RowEncoder
from harvest_dagster.outbox.stasher import stash
from harvest_dagster.outbox.table import CATALOGUE, Outbox, Shape


def stash_lines(
    connection: psycopg.Connection[Any],
    lines: Iterable[str],
    outbox: Outbox,
    on_message: Callable[[Message], object] = lambda _message: None,
) -> int:
    """Stash the messages of all lines in the caller's transaction; return how many."""
    reader = LineReader(lines)
    try:
        return stash(connection, _announced(reader, on_message), outbox=outbox)
    except MessageError as error:
        raise MessageError(f"line {reader.number}: {error}; nothing was stashed") from None
    except UnicodeDecodeError as error:
        raise MessageError(f"{_undecoded(reader, error)}; nothing was stashed") from None


def stash_in_batches(
    connection: psycopg.Connection[Any], lines: Iterable[str], outbox: Outbox, size: int
) -> Iterator[int]:
    """Stash in transactions of so many messages, and yield after each how many there are by then.

    Look for bad lines first: here one would end it half-way.
    """
    count, messages = 0, iter(LineReader(lines))
    while batch := list(islice(messages, size)):
        with connection.transaction():
            count += stash(connection, batch, outbox=outbox)
        yield count


def bad_lines(
    connection: psycopg.Connection[Any], lines: Iterable[str], outbox: Outbox
) -> Iterator[str]:
    """Yield the number of each line that could not be stashed, and why; write nothing."""
    rows = connection.execute(CATALOGUE["columns"].text, (outbox.table.sql,)).fetchall()
    encoder = RowEncoder(outbox, Shape.read(outbox.table, rows))
    reader, ended = LineReader(iter(lines)), False
    while not ended:
        try:
            for message in reader:
                encoder.copy_row(message, None)
            ended = True
        except MessageError as error:  # which ends the reader's loop, and not its lines
            yield f"line {reader.number}: {error}"
        except UnicodeDecodeError as error:
            ended = True
            yield _undecoded(reader, error)


def _announced(
    messages: Iterable[Message], on_message: Callable[[Message], object]
) -> Iterator[Message]:
    for message in messages:
        on_message(message)
        yield message


def _undecoded(reader: LineReader, error: UnicodeDecodeError) -> str:
    return f"after line {reader.number}: not UTF-8 ({error.reason})"
