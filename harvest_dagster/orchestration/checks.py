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
    ("outbox", "no_stall"): "Where records wait, a tour is at work on them.",
    ("outbox", "topics_open"): "Every topic that records wait for can be published to.",
    ("outbox", "table_healthy"): "The table has the columns, indexes and schema that we count on.",
    ("parked", "nothing_parked"): "No record was set aside.",
}


def verdicts(status: Status, shards: int) -> Iterator[Verdict]:
    """Judge what can be seen in the tables at one moment."""
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
    yield _stall(status, shards)
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
        f"{parked.records:,} records are parked, {parked.held_keys:,} keys wait for them{reasons}",
    )


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
    with harvest.outbox.connection("check") as connection:
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


def _stall(status: Status, shards: int) -> Verdict:
    """Tell whether records wait that nobody works on; a pause between two tours is none."""
    alive = {tour.shard for tour in status.tours if tour.alive}
    waits = status.backlog.records > 0 and status.backlog.oldest_seconds > _STALLED_SECONDS
    # A harvest without Dagster tells no tour of itself: there the claims tell that it works.
    claims = (
        status.in_flight.records > 0 and (status.in_flight.oldest_seconds or 0) < _STALLED_SECONDS
    )
    stalled = waits and len(alive) < shards and not claims
    says = (
        f"{status.backlog.records:,} records wait, and no tour runs for"
        f" {shards - len(alive)} of {shards} shards: see the sensor's ticks and the last run"
        if stalled
        else "what waits is worked on"
    )
    return Verdict("outbox", "no_stall", not stalled, _ERROR, says)
