"""The asset checks of a harvest: red when somebody should look, green again when it is over.

The sensor evaluates them with every tick and reports what changed; anybody may also run them from
the UI, which looks at that moment.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import dagster as dg
import psycopg

from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.status import Status, read_status
from harvest_dagster.orchestration.names import Names
from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.orchestration.telling import ages
from harvest_dagster.outbox.check import Level
from harvest_dagster.outbox.check import check as check_table
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import printable

_YOUNG_SECONDS = 60.0
_STALLED_SECONDS = 30.0
_EVENTS = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found."""

    asset: str
    check: str
    passed: bool
    severity: dg.AssetCheckSeverity
    says: str

    def evaluation(self, names: Names) -> dg.AssetCheckEvaluation:
        """As the sensor reports it."""
        return dg.AssetCheckEvaluation(
            asset_key=names.asset(self.asset),
            check_name=self.check,
            passed=self.passed,
            severity=self.severity,
            description=printable(self.says),
        )


_ERROR, _WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
_DESCRIPTIONS = {
    ("lease", "one_leader"): "Each shard has a leader whose lease has not expired.",
    ("outbox", "young"): f"The oldest record has waited for less than {_YOUNG_SECONDS:.0f} s.",
    ("outbox", "no_stall"): "Where records wait, a tour is at work on them, and gets on.",
    ("outbox", "topics_open"): "Every topic that records wait for can be published to.",
    ("outbox", "table_healthy"): "The table has the columns, indexes and schema that we count on.",
    ("parked", "nothing_parked"): "No record was set aside.",
}


def verdicts(status: Status, shards: int, still_seconds: float = 0.0) -> Iterator[Verdict]:
    """Judge what can be seen in the tables at one moment.

    `still_seconds` is what one moment does not show: for how long nothing was published.
    """
    leading = {row.shard for row in status.leases if not row.expired}
    missing = sorted(set(range(shards)) - leading)
    yield Verdict(
        "lease",
        "one_leader",
        not missing,
        _ERROR,
        "every shard has its leader"
        if not missing
        else f"nobody leads shard {', '.join(map(str, missing))}: is the sensor on?",
    )
    oldest = status.backlog.oldest_seconds
    yield Verdict(
        "outbox",
        "young",
        oldest < _YOUNG_SECONDS,
        _WARN,
        f"{status.backlog.records:,} records wait, the oldest for {ages(oldest)}",
    )
    yield _stall(status, shards, still_seconds)
    held = {topic: why for tour in status.tours if tour.alive for topic, why in tour.held.items()}
    yield Verdict(
        "outbox",
        "topics_open",
        not held,
        _ERROR,
        "every topic can be published to"
        if not held
        else "; ".join(f"records for {topic} wait: {why}" for topic, why in held.items()),
    )
    parked = status.parked
    reasons = "".join(f"; {number:,}: {reason}" for reason, number in parked.reasons.items())
    yield Verdict(
        "parked",
        "nothing_parked",
        not parked.records,
        _WARN,
        f"{parked} records are parked, {parked.held_keys:,} keys wait for them{reasons}",
    )


def blind(why: str) -> Iterator[Verdict]:
    """Judge what can't be seen: nothing is known to be well any more."""
    for asset, check in _DESCRIPTIONS:
        yield Verdict(asset, check, False, _ERROR, f"it can't be told: {why}")  # noqa: FBT003 - red


def nobody_stands(name: str) -> Verdict:
    """Judge a harvest whose sensor ticks no more, and that nobody else leads."""
    says = (
        f"nobody leads {name}, for its sensor does not tick: turn it on, or see to Dagster's daemon"
    )
    return Verdict("lease", "one_leader", False, _ERROR, says)  # noqa: FBT003 - red


def table_verdict(connection: psycopg.Connection[object], table: TableName) -> Verdict:
    """Judge the table, which is a look at the catalogue."""
    found = [f for f in check_table(connection, table) if f.level is not Level.NOTE]
    errors = any(finding.level is Level.ERROR for finding in found)
    says = "; ".join(finding.what for finding in found) or "all is as it should be"
    return Verdict("outbox", "table_healthy", not found, _ERROR if errors else _WARN, says)


def harvest_checks(names: Names) -> list[dg.AssetChecksDefinition]:
    """Make the checks that may be run from the UI."""
    return [_check(names, asset, name, says) for (asset, name), says in _DESCRIPTIONS.items()]


def _check(names: Names, asset: str, name: str, says: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=names.asset(asset),
        name=name,
        description=says,
        required_resource_keys={names.key},
    )
    def run(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        harvest: HarvestResource = getattr(context.resources, names.key)
        found = next(v for v in _look(harvest, name) if v.check == name)
        return dg.AssetCheckResult(
            passed=found.passed, severity=found.severity, description=printable(found.says)
        )

    return run


def _look(harvest: HarvestResource, name: str) -> Sequence[Verdict]:
    config = harvest.config()
    with harvest.outbox.reading("check") as connection:
        return _LOOKS.get(name, _look_at_status)(connection, config)


def _look_at_status(
    connection: psycopg.Connection[object], config: HarvestConfig
) -> Sequence[Verdict]:
    table = TableName.parse(config.outbox)
    return [*verdicts(read_status(connection, table, config.name, events=_EVENTS), config.shards)]


def _look_at_table(
    connection: psycopg.Connection[object], config: HarvestConfig
) -> Sequence[Verdict]:
    return [table_verdict(connection, TableName.parse(config.outbox))]


_LOOKS: dict[str, Callable[[psycopg.Connection[object], HarvestConfig], Sequence[Verdict]]] = {
    "table_healthy": _look_at_table
}


def _stall(status: Status, shards: int, still_seconds: float) -> Verdict:
    """Tell whether records wait and nothing gets on; a pause between two tours is no stall."""
    says = _stands_still(status, shards, still_seconds)
    return Verdict("outbox", "no_stall", not says, _ERROR, says or "what waits is worked on")


def _stands_still(status: Status, shards: int, still_seconds: float) -> str:
    alive = {tour.shard for tour in status.tours if tour.alive}
    waiting, flying = status.backlog, status.in_flight
    oldest = flying.oldest_seconds or 0.0
    waits = waiting.records > 0 and waiting.oldest_seconds > _STALLED_SECONDS
    if flying.records and oldest > _STALLED_SECONDS:
        return (
            f"{flying.records:,} records are in flight, the oldest for {ages(oldest)}: does Kafka"
            " answer, and does a lock keep them from being purged? See the tour's run; `remark`"
            " begins them anew"
        )
    # A harvest without Dagster tells no tour of itself: there the claims tell that it works.
    if waits and len(alive) < shards and not flying.records:
        return (
            f"{waiting.records:,} records wait, and no tour runs for {shards - len(alive)} of"
            f" {shards} shards: see the sensor's ticks and the last run"
        )
    # What waits for a topic, or behind a parked record, is told by the checks for those.
    held = status.parked.held_keys or any(tour.held for tour in status.tours)
    if waits and len(alive) == shards and not held and still_seconds > _STALLED_SECONDS:
        return (
            f"{waiting.records:,} records wait, a tour runs, and nothing was published for"
            f" {ages(still_seconds)}: see the tour's run"
        )
    return ""
