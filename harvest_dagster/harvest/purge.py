"""The last stage: remove what was published from the outbox, and its claims with it.

It runs on a thread and a connection of its own, and blocks on the database alone. One statement
purges all that has settled since the last one; while that is little, it waits for more, since a
statement for each small transaction would slow down those who wait for theirs.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any

import psycopg

from harvest_dagster.harvest.batch import Batch
from harvest_dagster.harvest.stage import Round
from harvest_dagster.harvest.table_statements import Statements
from harvest_dagster.ledger.fence import Fence

_FEW = 100
_PAUSE_SECONDS = 0.02


class Purger:
    """Purges for one round; `run` is the thread.

    Batches settle in the order of their numbers, so the last one stands for all.
    """

    def __init__(self, connection: psycopg.Connection[Any], sql: Statements, fence: Fence) -> None:
        self._connection, self._sql, self._fence = connection, sql, fence
        self.purged = 0

    def run(self, round_: Round) -> None:
        """Purge until the publisher has no more."""
        last = False
        while not last:
            batches, last = _all(round_.settled)
            if round_.halted.is_set():
                return
            if batches:
                round_.check()
                self.up_to(batches[-1].number)
                records, size = sum(len(b.rows) for b in batches), sum(b.size for b in batches)
                round_.window.give_back(records, size, [batch.number for batch in batches])
                if records < _FEW:
                    round_.draining.wait(_PAUSE_SECONDS)

    def up_to(self, batch: int) -> int:
        """Purge all claimed batches up to a number; return how many records that were."""
        (purged,) = self._fence.row(self._connection, self._sql.purge, batch=batch)
        self.purged += purged
        return int(purged)


def _all(settled: SimpleQueue[Batch | None]) -> tuple[list[Batch], bool]:
    """Wait for the first, and take all that are there; return whether it was the end."""
    items, found = [], settled.get()
    while found is not None:
        items.append(found)
        try:
            found = settled.get_nowait()
        except Empty:
            return items, False
    return items, True
