"""The claims of deliveries whose records have no identity: which ids a batch has, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import psycopg

from harvest_dagster.harvest.batch import Batch, Row, as_multirange
from harvest_dagster.ledger.fence import Fence


class Claims(Protocol):
    """Marks batches under one term, each with the next number; each call blocks on PostgreSQL."""

    def claim(self, rows: Sequence[Row], size: int) -> Batch:
        """Write the claim of a batch, and return it."""


class PlainClaims:
    """Marks batches that are given up, and marked again, where they were not published."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        fence: Fence,
        statement: bytes,
        number: int,
        *,
        exactly_once: bool,
    ) -> None:
        """Go on with a number."""
        self._connection, self._fence, self._statement = connection, fence, statement
        self._number, self._exactly_once = number, exactly_once

    def claim(self, rows: Sequence[Row], size: int) -> Batch:
        """Write the claim of a batch, and return it."""
        batch = Batch(self._number, rows, size)
        parameters = {
            "batch": batch.number,
            "ids": as_multirange(row[0] for row in rows),
            "count": len(rows),
            "exactly_once": self._exactly_once,
        }
        self._fence.write(self._connection, self._statement, **parameters)
        self._number += 1
        return batch
