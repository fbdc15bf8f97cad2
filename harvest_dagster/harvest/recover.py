"""What a tour does first, and after every failure: find out what was published, and settle it.

    1  the epoch is ours: no statement of an older one can write any more
    2  `init_transactions` fences the old producer, and settles the transaction that it left open
    3  the committed batch number tells, from inside Kafka, what was published
    4  claims up to that number are purged
    5  all other claims are given up, so that their records are marked again; that is written down

At least once there is no such number, and all claims are given up: one record of a key, at most,
was published and not purged. Claims that an `exactly_once` leader left are settled its way first.
Those of the delivery `sequenced` stay, and are published as they are (`sequenced_claims`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaException, TopicPartition

from harvest_dagster.errors import KafkaError
from harvest_dagster.harvest.purge import Purger
from harvest_dagster.kafka.refusals import explained
from harvest_dagster.ledger.fence import Fence, fenced
from harvest_dagster.postgres.statements import statements
from harvest_dagster.text import printable

_log = logging.getLogger(__name__)
_SQL = statements("harvest_dagster.harvest", "claims.sql")
_REMARK = fenced(_SQL["remark"])
_COMMITTED_SECONDS = 30.0
OFFSETS_KEPT_SECONDS = 7 * 86_400.0
"""Kafka's default for how long it keeps the offsets of a group in which nobody commits."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found, and what came of it."""

    committed: int
    purged: int
    remarked: int
    next_batch: int


def read_identity(connection: psycopg.Connection[Any]) -> str:
    """Return which database this is."""
    row = connection.execute(_SQL["identity"].text).fetchone()
    return str(row[0]) if row else ""


def are_exactly_once(connection: psycopg.Connection[Any], fence: Fence) -> bool:
    """Return whether a leader that published in transactions left claims."""
    return bool(_one(connection, "exactly_once", fence)[0])


def committed_batch(group: Consumer, place: TopicPartition) -> int | None:
    """Read the last batch number that was committed along with its messages.

    The number of another database's outbox, of the same name on the same Kafka, says nothing.
    """
    try:
        (found,) = group.committed([place], timeout=_COMMITTED_SECONDS)
    except KafkaException as failure:
        fault = explained(failure)
        raise KafkaError(f"Kafka did not tell what was published: {fault}") from failure
    if found.error is not None:
        raise KafkaError(f"Kafka did not tell what was published: {explained(found.error)}")
    if found.offset < 0:
        return None
    if found.metadata != place.metadata:
        _log.warning(
            "group of %s in Kafka belongs to another database (%s): give each outbox a name of its"
            " own; what was in flight is marked again",
            place.topic,
            printable(str(found.metadata)),
        )
        return None
    return found.offset


def recover(
    connection: psycopg.Connection[Any],
    purger: Purger,
    fence: Fence,
    committed: int | None,
    reason: str,
) -> Recovery:
    """Settle the claims that are there, and return the number of the next batch."""
    (last,) = _one(connection, "last_batch", fence)
    purged = purger.up_to(committed) if committed is not None else 0
    claims, records, epoch, oldest = fence.row(connection, _REMARK)
    if claims:
        kind = "remarked"
        if committed is None and oldest > OFFSETS_KEPT_SECONDS:
            kind = "ambiguous"
        detail = {
            "records": records,
            "claims": claims,
            "from_epoch": epoch,
            "to_epoch": fence.lease.epoch,
            "oldest_seconds": round(oldest, 3),
            "reason": reason,
        }
        if kind == "ambiguous":
            detail["warning"] = "Kafka no longer knows what was published: doubles are possible"
        fence.note(connection, kind, detail)
        _log.info("%s %s records of %s claims: %s", kind, f"{records:,}", claims, reason)
    return Recovery(committed or 0, purged, records, max(last, committed or 0) + 1)


def _one(connection: psycopg.Connection[Any], name: str, fence: Fence) -> Any:  # noqa: ANN401 - a row
    return connection.execute(_SQL[name].text, fence.parameters).fetchone()
