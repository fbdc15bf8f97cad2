"""What the sensor reports to Dagster's event log: on change, seldom otherwise, and bounded.

The cursor remembers what was reported last. So a tick that is repeated repeats at most its own
events, and a code location that is reloaded goes on where the last one was.

    figures      when they changed, at most every 20 s, and once more when the rate is down to 0;
                 every minute while records wait, since they grow older; else every 10 minutes
    checks       when one turned red or green; those that are red every minute, since whoever runs
                 one from the UI looks at one moment only; all of them every 10 minutes, and when
                 the sensor ticks again after a silence, in which others may have reported them
    lease        an observation for each event, at most 10 a tick
    remarks      likewise
    topics       when their counts changed, at most once a minute
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import dagster as dg

from harvest_dagster.harvest.status import Status
from harvest_dagster.ledger.events import Event
from harvest_dagster.orchestration.checks import Verdict
from harvest_dagster.orchestration.cursor import Cursor, published_of
from harvest_dagster.orchestration.names import Names
from harvest_dagster.orchestration.pulse import LONGEST_SILENCE

_CHANGED_SECONDS, _WAITING_SECONDS, _SAME_SECONDS = 20.0, 60.0, 600.0
_TOPIC_SECONDS = 60.0
_MOST_EVENTS = 10
_ROWS = 20
_LEASE_KINDS = ("acquired", "refreshed", "revoked", "fenced")
_REMARK_KINDS = ("remarked", "ambiguous")
HISTORY_KINDS = _LEASE_KINDS + _REMARK_KINDS
"""What the sensor reads: of all events, a storm of parked records would push these out."""
AssetEvent: TypeAlias = "dg.AssetObservation | dg.AssetCheckEvaluation"
Figures: TypeAlias = "dict[str, int | float]"


class Reporter:
    """Says what is due in the tick of a moment, and moves the cursor on."""

    def __init__(self, names: Names, cursor: Cursor, now: float) -> None:
        self._names, self.cursor, self._now = names, cursor, now

    def figures(self, status: Status, rate: float) -> Iterator[AssetEvent]:
        """The outbox's figures, and the parked records."""
        cursor = self.cursor
        figures: Figures = {**_figures(status), "rate": rate}
        if not self._are_due(figures):
            return
        yield self._observed("outbox", figures)
        if figures["parked"] != cursor.figures.get("parked", 0):
            yield self._observed("parked", {"parked": status.parked.records, **_reasons(status)})
        cursor.figures_at, cursor.figures = self._now, figures

    def _are_due(self, figures: Figures) -> bool:
        age, last = self._now - self.cursor.figures_at, self.cursor.figures
        stopped = not figures["rate"] and last.get("rate", 0) > 0
        changed = stopped or _counts(figures) != _counts(last)
        if changed:
            return age >= _CHANGED_SECONDS
        return age >= (_WAITING_SECONDS if figures["backlog"] else _SAME_SECONDS)

    def looks_closely(self, found: Sequence[Verdict]) -> bool:
        """Whether the table is to be looked at too: now and then, and while something is wrong."""
        said = {verdict.check for verdict in found}
        wrong = any(not ok for check, ok in self.cursor.checks.items() if check not in said)
        return wrong or self._now - self.cursor.checks_at >= _SAME_SECONDS

    def checks(self, found: Sequence[Verdict]) -> Iterator[AssetEvent]:
        """The checks that turned, or all of them now and then."""
        cursor = self.cursor
        silent = self._now - cursor.ticked_at > LONGEST_SILENCE
        due = silent or self._now - cursor.checks_at >= _SAME_SECONDS
        again = due or self._now - cursor.reds_at >= _WAITING_SECONDS
        if due:
            cursor.checks_at = self._now
        if again:
            cursor.reds_at = self._now
        for verdict in found:
            turned = cursor.checks.get(verdict.check) != verdict.passed
            if due or turned or (again and not verdict.passed):
                cursor.checks[verdict.check] = verdict.passed
                yield verdict.evaluation(self._names)

    def history(self, events: Sequence[Event]) -> Iterator[AssetEvent]:
        """What happened to leases, and what was remarked, since the last tick; newest first."""
        new = [event for event in events if event.id > self.cursor.event]
        self.cursor.event = max((event.id for event in new), default=self.cursor.event)
        for what, kinds in (("lease", _LEASE_KINDS), ("remarks", _REMARK_KINDS)):
            table = _table(what, [event for event in events if event.kind in kinds][:_ROWS])
            mine = [event for event in new if event.kind in kinds][:_MOST_EVENTS]
            for event in reversed(mine):
                yield self._observed(what, {**_facts(event), "history": table})

    def topics(self, counts: Mapping[str, int]) -> Iterator[AssetEvent]:
        """How much is in the topics."""
        cursor = self.cursor
        if self._now - cursor.topics_at < _TOPIC_SECONDS or dict(counts) == cursor.topics:
            return
        for topic, count in counts.items():
            if count != cursor.topics.get(topic):
                yield dg.AssetObservation(
                    asset_key=self._names.topic(topic), metadata={"end of the log": count}
                )
        cursor.topics_at, cursor.topics = self._now, dict(counts)

    def said(self, line: str) -> str:
        """Remember that this tick was, and what it saw; tell the cursor as Dagster keeps it."""
        self.cursor.saw, self.cursor.ticked_at = line, self._now
        return self.cursor.model_dump_json()

    def _observed(
        self, what: str, metadata: Mapping[str, dg.MetadataValue | int | float | str]
    ) -> dg.AssetObservation:
        return dg.AssetObservation(asset_key=self._names.asset(what), metadata=metadata)


def _figures(status: Status) -> Figures:
    tours = status.tours
    return {
        "backlog": status.backlog.records,
        "oldest seconds": round(status.backlog.oldest_seconds, 1),
        "in flight": status.in_flight.records,
        "published": published_of(status),
        "remarked": sum(tour.figure("remarked") for tour in tours),
        "parked": status.parked.records,
    }


def _counts(figures: Mapping[str, int | float]) -> Mapping[str, int | float]:
    """The figures without those that change by themselves as time goes by."""
    return {key: value for key, value in figures.items() if key not in {"oldest seconds", "rate"}}


def _reasons(status: Status) -> dict[str, dg.MetadataValue]:
    rows = [
        dg.TableRecord({"records": number, "reason": reason})
        for reason, number in status.parked.reasons.items()
    ]
    return {"reasons": dg.MetadataValue.table(rows, schema=_REASONS)} if rows else {}


def _facts(event: Event) -> dict[str, dg.MetadataValue | int | float | str]:
    facts: dict[str, dg.MetadataValue | int | float | str] = {
        "what": event.kind,
        "when": dg.MetadataValue.timestamp(event.at),
        "shard": event.shard,
        "epoch": event.epoch or 0,
        "leader id": str(event.leader_id),
    }
    details = event.detail.items()
    return facts | {
        key.replace("_", " "): value if isinstance(value, int | float) else str(value)
        for key, value in details
    }


def _table(what: str, events: Sequence[Event]) -> dg.MetadataValue:
    schema = _HISTORIES[what]
    names = [column.name for column in schema.columns]
    rows = [{name: _cell(event, name) for name in names} for event in events]
    return dg.MetadataValue.table([*map(dg.TableRecord, rows)], schema=schema)


def _cell(event: Event, name: str) -> str | int | float:
    detail = event.detail
    cells: dict[str, str | int | float] = {
        "when": event.at.isoformat(" ", "seconds"),
        "what": event.kind,
        "shard": event.shard,
        "epoch": event.epoch or 0,
        "from epoch": int(detail.get("from_epoch", 0)),
        "records": int(detail.get("records", 0)),
        "seconds": float(detail.get("oldest_seconds", 0.0)),
        "holder": str(detail.get("holder", "")),
        "why": str(detail.get("reason", "")),
    }
    return cells[name]


def _schema(**columns: str) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[dg.TableColumn(name.replace("_", " "), of) for name, of in columns.items()]
    )


_HISTORIES = {
    "lease": _schema(
        when="string", what="string", shard="int", epoch="int", holder="string", why="string"
    ),
    "remarks": _schema(
        when="string",
        what="string",
        shard="int",
        from_epoch="int",
        epoch="int",
        records="int",
        seconds="float",
        why="string",
    ),
}
_REASONS = _schema(records="int", reason="string")
