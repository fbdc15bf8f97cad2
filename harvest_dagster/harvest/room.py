"""What the harvest brings to those above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting, table_of
from harvest_dagster.harvest.judging import CHECKS, inspect, judge
from harvest_dagster.harvest.leader_events import KINDS
from harvest_dagster.harvest.parked_verbs import DISCARD, REQUEUE
from harvest_dagster.harvest.stash_verb import STASH
from harvest_dagster.harvest.status import Status, read_status
from harvest_dagster.harvest.table_verbs import CREATE_OUTBOX, MIGRATE
from harvest_dagster.harvest.verbs import REMARK
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


def _look(connection: psycopg.Connection[Any], led: Harvesting) -> Status:
    return read_status(connection, table_of(led), led.name, events=0)


def _judge(led: Harvesting, status: Status, still_seconds: float) -> Iterable[Verdict]:
    return judge(status, led.config.shards, still_seconds)


def _inspect(connection: psycopg.Connection[Any], led: Harvesting) -> Iterable[Verdict]:
    return inspect(connection, table_of(led))


def _observe(_led: Led, status: Status) -> Mapping[str, Facts]:
    figures: Facts = {
        "backlog": status.backlog.records,
        "oldest seconds": round(status.backlog.oldest_seconds, 1),
        "in flight": status.in_flight.records,
        "published": status.done,
        "remarked": sum(tour.figure("remarked") for tour in status.tours),
        "parked": status.parked.records,
    }
    reasons: list[Row] = [
        {"records": n, "reason": reason} for reason, n in status.parked.reasons.items()
    ]
    return {"outbox": figures, "parked": {"parked": status.parked.records, "reasons": reasons}}


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
    word="outbox",
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
