"""What is applied at once: messages, and the transaction that they are applied in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import psycopg

from harvest_dagster.config import DEFAULT_OUTBOX
from harvest_dagster.outbox import Outbox, stash
from harvest_dagster.outbox.stasher import Messages
from harvest_dagster.reader.received import ReceivedMessage


class ReadBatch:
    """Messages that count, in order, each once; and the store's transaction.

    What is written on `connection` is committed with the reader's position, or not at all.
    `messages` streams: it may be read once, and must be read to its end.
    """

    def __init__(
        self, messages: Iterator[ReceivedMessage], connection: psycopg.Connection[Any]
    ) -> None:
        self.messages = messages
        self.connection = connection

    def stash(self, messages: Messages, *, outbox: Outbox | str = DEFAULT_OUTBOX) -> int:
        """Stash messages into an outbox of the store's database, in this transaction."""
        return stash(self.connection, messages, outbox=outbox)


Apply: TypeAlias = "Callable[[ReadBatch], None]"
"""Does something with a batch; it may be called again with the same, when nothing was committed."""
