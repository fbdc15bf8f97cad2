"""What the harvest brings to those above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting, table_of
from harvest_dagster.harvest.judging import CHECKS, inspect, judge
from harvest_dagster.harvest.leader_events import KINDS
from harvest_dagster.harvest.parked_verbs import DISCARD, REQUEUE, shown_key
from harvest_dagster.harvest.stash_verb import STASH
from harvest_dagster.harvest.status import Seen, Status, read_seen
from harvest_dagster.harvest.table_verbs import CREATE_OUTBOX, MIGRATE
from harvest_dagster.harvest.verbs import REMARK
from harvest_dagster.ledger.words import OUTBOX
from harvest_dagster.outbox.parked import Parked
from harvest_dagster.text import ages
from harvest_dagster.work.described import LEASE_KINDS
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import AssetText, Facts, Room, Row, Verdict

_BEHIND = ("outbox",)
_ASSETS = (
    AssetText(
        "outbox",
        "Messages that wait to be published: backlog, age of the oldest, in flight, rate.",
        kinds=frozenset({"postgres", "outbox"}),
    ),
    AssetText(
        "lease",
        "Who leads, under which epoch, and how each term began and ended.",
        kinds=frozenset({"postgres", "kafka"}),
        behind=_BEHIND,
        events=LEASE_KINDS,
    ),
    AssetText(
        "remarks",
        "What was marked again, since nobody could tell that it had been published.",
        behind=_BEHIND,
        events=("remarked", "ambiguous"),
        columns=("when", "what", "shard", "from epoch", "epoch", "records", "seconds", "why"),
    ),
    AssetText(
        "parked",
        "Records that Kafka refused for good, with the reason; an operator lets them go on.",
        behind=_BEHIND,
    ),
)
_SCHEMA = "public"


def _look(connection: psycopg.Connection[Any], led: Harvesting) -> Seen:
    return read_seen(connection, table_of(led), led.name)


def _judge(led: Harvesting, status: Status, still_seconds: float) -> Iterable[Verdict]:
    return judge(status, led.config.shards, still_seconds)


def _inspect(connection: psycopg.Connection[Any], led: Harvesting) -> Iterable[Verdict]:
    return inspect(connection, table_of(led))


def _observe(_led: Led, status: Seen) -> Mapping[str, Facts]:
    waiting: list[Row] = [{"topic": name, "records": n} for name, n in status.topics.items()]
    figures: Facts = {
        "backlog": status.backlog.records,
        "oldest seconds": round(status.backlog.oldest_seconds, 1),
        "in flight": status.in_flight.records,
        "published": status.done,
        "remarked": sum(tour.ever("remarked") for tour in status.tours),
        "parked": status.parked.records,
        "backlog by topic": waiting,
    }
    reasons: list[Row] = [
        {"records": n, "reason": reason} for reason, n in status.parked.reasons.items()
    ]
    parked: Facts = {
        "parked": status.parked.records,
        "ids": f"[{', '.join(str(record.id) for record in status.aside)}]" if status.aside else "",
        "which": [_row(record) for record in status.aside],
        "reasons": reasons,
    }
    return {"outbox": figures, "parked": parked}


def _row(record: Parked) -> Row:
    return {
        "id": record.id,
        "topic": record.topic,
        "key": shown_key(record),
        "bytes": record.value_bytes or 0,
        "tries": record.tries,
        "since": record.parked_at.isoformat(" ", "seconds"),
        "reason": record.reason,
    }


def _about(status: Status) -> str:
    backlog, parked = status.backlog, status.parked
    about = "" if backlog.exact else "about "
    oldest = f", oldest {ages(backlog.oldest_seconds)}" if backlog.records else ""
    held = {topic for tour in status.tours if tour.alive for topic in tour.held}
    closed = f", {', '.join(sorted(held))} can't be published to" if held else ""
    aside = f", {parked} parked" if parked.records else ""
    return f", backlog {about}{backlog.records:,}{oldest}{closed}{aside}"


def _waits(status: Status) -> int:
    return status.backlog.records


def _place(led: Harvesting) -> tuple[str, ...]:
    table = table_of(led)
    return (table.schema or _SCHEMA, table.table)


ROOM = Room(
    word=OUTBOX,
    events=KINDS,
    commands="harvest_dagster.cli.outbox:outbox",
    options=HarvestConfig,
    led=Harvesting,
    assets=_ASSETS,
    checks=CHECKS,
    look=_look,
    judge=_judge,
    inspect=_inspect,
    observe=_observe,
    waits=_waits,
    about=_about,
    place=_place,
    twice="each message would be published twice",
    warnings=frozenset({"remarked", "ambiguous", "parked", "discarded", "held"}),
    verbs=(REMARK, REQUEUE, DISCARD, CREATE_OUTBOX, MIGRATE, STASH),
)
