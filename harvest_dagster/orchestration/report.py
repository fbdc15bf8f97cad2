"""What the sensor reports to Dagster's event log: on change, seldom otherwise, and bounded.

The cursor remembers what was reported last. So a tick that is repeated repeats at most its own
events, and a code location that is reloaded goes on where the last one was.

    figures      at once when others lead; when they changed, at most every 20 s, and once more when
                 the rate is down to 0; every minute while records wait, since they grow older; else
                 every 10 minutes
    others       what is seen of the other assets, at once when it changed
    checks       when one turned red or green; those that are red every minute, since whoever runs
                 one from the UI looks at one moment only; all of them every 10 minutes, and when
                 the sensor ticks again after a silence, in which others may have reported them
    events       an observation for each, of the asset that it belongs to, at most 10 a tick
    topics       when their counts changed, at most once a minute
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

import dagster as dg

from harvest_dagster.ledger.events import Event
from harvest_dagster.orchestration.checks import evaluation
from harvest_dagster.orchestration.cursor import Cursor
from harvest_dagster.orchestration.facts import as_metadata, schema
from harvest_dagster.orchestration.leaders import Leaders
from harvest_dagster.orchestration.logbook import described
from harvest_dagster.orchestration.operate import pasted
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.pulse import LONGEST_SILENCE
from harvest_dagster.text import printable
from harvest_dagster.work.room import AssetText, Facts, Room, Verdict

_CHANGED_SECONDS, _WAITING_SECONDS, _SAME_SECONDS = 20.0, 60.0, 600.0
_TOPIC_SECONDS = 60.0
_MOST_EVENTS = 10
_ROWS = 20
AssetEvent: TypeAlias = "dg.AssetObservation | dg.AssetCheckEvaluation"
Figures: TypeAlias = "dict[str, int | float]"


class Reporter:
    """Says what is due in the tick of a moment, and moves the cursor on."""

    def __init__(self, names: Names, room: Room, cursor: Cursor, now: float) -> None:
        self._names, self._room, self.cursor, self.now = names, room, cursor, now
        self._said: list[str] = []

    @property
    def happened(self) -> list[str]:
        """What has happened since the last tick, a line each."""
        return [printable(line) for line in self._said]

    def figures(
        self, seen: Mapping[str, Facts], rate: float, leaders: Leaders, *, waits: bool
    ) -> Iterator[AssetEvent]:
        """What is seen of the assets: of the first who leads and its figures, of others changes."""
        (first, facts), *others = seen.items()
        figures = {**_numbers(facts), "rate": rate}
        if self._are_due(figures, leaders, waits=waits):
            yield self._observed(first, {**leaders.metadata, **as_metadata(facts), "rate": rate})
            self.cursor.figures_at, self.cursor.figures = self.now, figures
            self.cursor.leaders = leaders.which
        for asset, said in others:
            digest = sha256(repr(said).encode()).hexdigest()[:16]
            known = self.cursor.said_of.get(asset)
            if digest != known and (known is not None or any(said.values())):
                yield self._observed(asset, {**as_metadata(said), **self._pasted(said)})
            self.cursor.said_of[asset] = digest

    def _pasted(self, said: Facts) -> Mapping[str, str]:
        ids = said.get("ids")
        return pasted(self._names, self._room, ids) if isinstance(ids, str) else {}

    def _are_due(self, figures: Figures, leaders: Leaders, *, waits: bool) -> bool:
        age, last = self.now - self.cursor.figures_at, self.cursor.figures
        if leaders.which != self.cursor.leaders:
            return True
        stopped = not figures["rate"] and last.get("rate", 0) > 0
        changed = stopped or _counts(figures) != _counts(last)
        if changed:
            return age >= _CHANGED_SECONDS
        return age >= (_WAITING_SECONDS if waits else _SAME_SECONDS)

    def looks_closely(self, found: Sequence[Verdict]) -> bool:
        """Whether the table is to be looked at too: now and then, and while something is wrong."""
        said = {verdict.check for verdict in found}
        wrong = any(not ok for check, ok in self.cursor.checks.items() if check not in said)
        return wrong or self.now - self.cursor.checks_at >= _SAME_SECONDS

    def checks(self, found: Sequence[Verdict]) -> Iterator[AssetEvent]:
        """The checks that turned, or all of them now and then."""
        cursor = self.cursor
        silent = self.now - cursor.ticked_at > LONGEST_SILENCE
        due = silent or self.now - cursor.checks_at >= _SAME_SECONDS
        again = due or self.now - cursor.reds_at >= _WAITING_SECONDS
        if due:
            cursor.checks_at = self.now
        if again:
            cursor.reds_at = self.now
        for verdict in found:
            known = cursor.checks.get(verdict.check)
            turned = known != verdict.passed
            if due or turned or (again and not verdict.passed):
                cursor.checks[verdict.check] = verdict.passed
                if turned and (known is not None or not verdict.passed):
                    colour = "green" if verdict.passed else "red"
                    self._said.append(f"{verdict.check} is {colour}: {verdict.says}")
                yield evaluation(self._names, verdict)

    def history(self, assets: Sequence[AssetText], events: Sequence[Event]) -> Iterator[AssetEvent]:
        """What happened since the last tick, of each asset; `events` are newest first."""
        new = [event for event in events if event.id > self.cursor.event]
        self.cursor.event = max((event.id for event in new), default=self.cursor.event)
        self._said += [described(event) for event in reversed(new)]
        for asset in assets:
            its = [event for event in events if event.kind in asset.events]
            for event in reversed([event for event in its if event in new][:_MOST_EVENTS]):
                history = _table(asset.columns, its[:_ROWS])
                yield self._observed(asset.name, {**_facts(event), "history": history})

    def topics(self, counts: Mapping[str, int]) -> Iterator[AssetEvent]:
        """Where the topics end."""
        cursor = self.cursor
        if self.now - cursor.topics_at < _TOPIC_SECONDS or dict(counts) == cursor.topics:
            return
        for topic, count in counts.items():
            if count != cursor.topics.get(topic):
                yield dg.AssetObservation(
                    asset_key=self._names.topic(topic), metadata={"end offsets": count}
                )
        cursor.topics_at, cursor.topics = self.now, dict(counts)

    def said(self, line: str) -> str:
        """Remember that this tick was, and what it saw; return the cursor as Dagster keeps it."""
        self.cursor.saw, self.cursor.ticked_at = line, self.now
        return self.cursor.write()

    def _observed(
        self, what: str, metadata: Mapping[str, dg.MetadataValue | int | float | str]
    ) -> dg.AssetObservation:
        return dg.AssetObservation(asset_key=self._names.asset(what), metadata=metadata)


def _numbers(facts: Facts) -> Figures:
    return {name: fact for name, fact in facts.items() if isinstance(fact, int | float)}


def _counts(figures: Mapping[str, int | float]) -> Mapping[str, int | float]:
    """The figures without those that change by themselves as time goes by."""
    return {key: value for key, value in figures.items() if key not in {"oldest seconds", "rate"}}


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


def _table(columns: Sequence[str], events: Sequence[Event]) -> dg.MetadataValue:
    rows = [{name: _cell(event, name) for name in columns} for event in events]
    return dg.MetadataValue.table([*map(dg.TableRecord, rows)], schema=schema(rows[0]))


def _cell(event: Event, name: str) -> str | int | float:
    detail = event.detail
    known: dict[str, str | int | float] = {
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
    return known[name] if name in known else str(detail.get(name.replace(" ", "_"), ""))
