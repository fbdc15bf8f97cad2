"""Applies a batch: all of it at once, or message by message, to find the one that can't be."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from harvest_dagster.errors import ReaderError, TransactionError
from harvest_dagster.reader.read_batch import Apply, ReadBatch
from harvest_dagster.reader.received import ReceivedMessage
from harvest_dagster.text import one_line

_log = logging.getLogger(__name__)
_Connection = psycopg.Connection[Any]
_PASSING = (errors.DeadlockDetected, errors.SerializationFailure)


class PassingError(Exception):
    """What `apply` raised because of PostgreSQL, which may go better next time."""


class ApplyError(Exception):
    """What `apply` raised of a whole batch, so that the message that it is about is to be found."""


def apply_whole(apply: Apply, messages: Iterator[ReceivedMessage], connection: _Connection) -> None:
    """Apply a batch; raise an ApplyError where the user's code failed, and a retry may not help."""
    try:
        _apply(apply, messages, connection)
    except Exception as failure:
        _raise_passing(failure, connection)
        raise ApplyError(one_line(failure)) from failure


def apply_alone(apply: Apply, messages: Iterator[ReceivedMessage], connection: _Connection) -> None:
    """Apply messages one by one; raise a ReaderError that names the one that can't be."""
    for message in messages:
        try:
            with connection.transaction():
                _apply(apply, iter([message]), connection)
        except Exception as failure:
            _raise_passing(failure, connection)
            place = f"{message.topic}, partition {message.partition}, offset {message.offset}"
            _log.error("what apply raised at %s", place, exc_info=True)
            raise ReaderError(
                f"apply raised {type(failure).__name__} at {place}: {one_line(failure)}; nothing of"
                " its batch was committed: mend apply, or what it writes to, and start again"
            ) from failure


def _apply(apply: Apply, messages: Iterator[ReceivedMessage], connection: _Connection) -> None:
    apply(ReadBatch(messages, connection))
    if next(messages, None) is not None:
        raise TransactionError(
            "apply returned before it had read batch.messages to their end: what it leaves unread"
            " would be lost"
        )
    if connection.info.transaction_status == TransactionStatus.INERROR:
        raise TransactionError(
            "apply returned although a statement had failed, so nothing more can be committed: wrap"
            " what may fail into `with batch.connection.transaction():`"
        )


def _raise_passing(failure: Exception, connection: _Connection) -> None:
    if isinstance(failure, _PASSING) or connection.closed or connection.broken:
        raise PassingError(one_line(failure)) from failure
