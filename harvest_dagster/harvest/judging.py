"""What is judged of a harvest: red when somebody should look, green again when it is over."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from harvest_dagster.harvest.status import ParkedCount, Status
from harvest_dagster.outbox.check import check as check_table
from harvest_dagster.postgres.finding import Level
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import ages, counted
from harvest_dagster.work.room import CheckText, Verdict

_YOUNG_SECONDS = 60.0
_STALLED_SECONDS = 30.0
CHECKS = (
    CheckText(
        "outbox", "young", f"The oldest record has waited for less than {_YOUNG_SECONDS:.0f} s."
    ),
    CheckText("outbox", "no_stall", "Where records wait, a tour is at work on them, and gets on."),
    CheckText("outbox", "topics_open", "Every topic that records wait for can be published to."),
    CheckText(
        "outbox",
        "table_healthy",
        "The table has the columns, indexes and schema that we count on.",
        closely=True,
    ),
    CheckText("parked", "nothing_parked", "No record was set aside."),
)


def judge(status: Status, shards: int, still_seconds: float = 0.0) -> Iterator[Verdict]:
    """Judge what can be seen in the tables at one moment.

    `still_seconds` is what one moment does not show: for how long nothing was published.
    """
    oldest = status.backlog.oldest_seconds
    yield Verdict(
        "outbox",
        "young",
        oldest < _YOUNG_SECONDS,
        f"{_wait(status.backlog.records)}, the oldest for {ages(oldest)}",
        serious=False,
    )
    stands = _stands_still(status, shards, still_seconds)
    yield Verdict("outbox", "no_stall", not stands, stands or "what waits is worked on")
    held = {topic: why for tour in status.tours if tour.alive for topic, why in tour.held.items()}
    waits = "; ".join(f"records for {topic} wait: {why}" for topic, why in held.items())
    yield Verdict("outbox", "topics_open", not held, waits or "every topic can be published to")
    parked = status.parked
    reasons = "".join(f"; {number:,}: {reason}" for reason, number in parked.reasons.items())
    yield Verdict(
        "parked",
        "nothing_parked",
        not parked.records,
        f"{_parked(parked)}{reasons}",
        serious=False,
    )


def inspect(connection: psycopg.Connection[object], table: TableName) -> Iterator[Verdict]:
    """Judge the table, which is a look at the catalogue."""
    found = [f for f in check_table(connection, table) if f.level is not Level.NOTE]
    errors = any(finding.level is Level.ERROR for finding in found)
    says = "; ".join(finding.what for finding in found) or "all is as it should be"
    yield Verdict("outbox", "table_healthy", not found, says, serious=errors)


def _stands_still(status: Status, shards: int, still_seconds: float) -> str:
    """Write why what waits does not get on, or nothing; a pause between two tours is no stall."""
    alive = {tour.shard for tour in status.tours if tour.alive}
    waiting, flying = status.backlog, status.in_flight
    oldest = flying.oldest_seconds or 0.0
    waits = waiting.records > 0 and waiting.oldest_seconds > _STALLED_SECONDS
    if flying.records and oldest > _STALLED_SECONDS:
        return (
            f"{counted(flying.records, 'record is', 'records are')} in flight, the oldest for"
            f" {ages(oldest)}: does Kafka answer, and does a lock keep them from being purged? See"
            " the tour's run; `remark` begins them anew"
        )
    # A harvest without Dagster has no row of its tour: there the claims show that it works.
    if waits and len(alive) < shards and not flying.records:
        return (
            f"{_wait(waiting.records)}, and no tour runs for {shards - len(alive)} of"
            f" {counted(shards, 'shard')}: see the sensor's ticks and the last run"
        )
    # What waits for a topic, or behind a parked record, is the matter of the checks for those.
    held = status.parked.held_keys or any(tour.held for tour in status.tours)
    if waits and len(alive) == shards and not held and still_seconds > _STALLED_SECONDS:
        return (
            f"{_wait(waiting.records)}, a tour runs, and nothing was published for"
            f" {ages(still_seconds)}: see the tour's run"
        )
    return ""


def _wait(records: int) -> str:
    return counted(records, "record waits", "records wait")


def _parked(parked: ParkedCount) -> str:
    records = counted(parked.records, "record is", "records are")
    keys = counted(parked.held_keys, "key waits", "keys wait")
    least = "" if parked.exact else "at least "
    return f"{least}{records} parked, {keys} for {'it' if parked.records == 1 else 'them'}"
