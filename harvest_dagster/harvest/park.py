"""Set a record aside that Kafka will never take, whole and with the reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import psycopg

from harvest_dagster.harvest.batch import Row
from harvest_dagster.harvest.table_statements import Statements
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.text import printable

_log = logging.getLogger(__name__)


def park(
    connection: psycopg.Connection[Any],
    sql: Statements,
    fence: Fence,
    rejected: Sequence[tuple[Row, str]],
    *,
    hold_keys: bool,
) -> int:
    """Park records; with `hold_keys`, later records of the same topic and key wait behind them.

    Of several rejected records of one key only the first is parked then: the others wait as well.
    """
    parked, lanes = 0, set()
    for row, reason in rejected:
        lane = (row[1], row[2])
        if hold_keys and row[2] is not None and lane in lanes:
            continue
        lanes.add(lane)
        holds = hold_keys and row[2] is not None
        said = {"id": row[0], "topic": row[1], "key": row[2], "reason": reason}
        fence.row(connection, sql.park, **said, holds_key=holds)
        _log.warning("parked record %s for %s: %s", row[0], printable(row[1]), printable(reason))
        parked += 1
    return parked
