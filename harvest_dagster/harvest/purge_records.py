"""Purge single records, without waiting for PostgreSQL: for the publisher at least once.

The publisher's own thread begins a purge, goes on with Kafka, and comes back for the end of it. A
thread of its own would cost more than it saves: each record's way would wait twice for the other
thread to let go of the interpreter.
"""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.sql import Literal

from harvest_dagster.harvest.batch import Sent
from harvest_dagster.harvest.table_statements import Statements
from harvest_dagster.ledger.fence import Fence

_NAME = b"purge_records"


class RecordPurger:
    """Purges for one round, one purge at a time; used by the publisher's thread alone."""

    def __init__(self, connection: psycopg.Connection[Any], sql: Statements, fence: Fence) -> None:
        self._pgconn, self._fence = connection.pgconn, fence
        term = fence.lease
        places = {
            "name": Literal(term.name).as_string(None),
            "shard": str(term.shard),
            "epoch": str(term.epoch),
            "ids": "$1",
            "batches": "$2",
        }
        self._text = (sql.purge_records.decode() % places).encode()
        self._prepared = False
        self._finished: list[int] = []
        self.purged = 0

    def begin(self, acked: list[Sent]) -> None:
        """Send a purge on its way."""
        if not self._prepared:
            self._result(self._pgconn.prepare(_NAME, self._text), ExecStatus.COMMAND_OK)
            self._prepared = True
        self._finished = _finished(acked)
        ids = [row[0] for row, _ in acked]
        self._pgconn.send_query_prepared(_NAME, [_array(ids), _array(self._finished)])
        while self._pgconn.flush():
            _wait(self._pgconn.socket, select.POLLOUT)

    def end(self, seconds: float) -> list[int] | None:
        """Return the batches of which no record is left, or nothing if the purge has not ended."""
        _wait(self._pgconn.socket, select.POLLIN, seconds)
        self._pgconn.consume_input()
        if self._pgconn.is_busy():
            return None
        while (result := self._pgconn.get_result()) is not None:
            self._result(result, ExecStatus.TUPLES_OK)
            if result.get_value(0, 0) == b"0":
                raise self._fence.over()
            self.purged += int(result.get_value(0, 1) or 0)
        return self._finished

    def _result(self, result: Any, wanted: ExecStatus) -> None:  # noqa: ANN401 - libpq's result
        if result.status != wanted:
            raise psycopg.OperationalError(result.get_error_message())


def _wait(socket: int, event: int, seconds: float | None = None) -> None:
    """Wait for a socket, whatever its number: `select` refuses the ones from 1024 on."""
    poll = select.poll()
    poll.register(socket, event)
    poll.poll(None if seconds is None else 1000 * seconds)


def _array(numbers: Iterable[int]) -> bytes:
    return b"{" + ",".join(map(str, numbers)).encode() + b"}"


def _finished(acked: list[Sent]) -> list[int]:
    """Count down the batches; return which have no record left."""
    finished = []
    for _, batch in acked:
        batch.left -= 1
        if not batch.left:
            finished.append(batch.number)
    return finished
