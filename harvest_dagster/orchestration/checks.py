"""The asset checks of whatever is led.

The sensor evaluates them with every tick and reports what changed; anybody may also run them from
the UI, which looks at that moment.
"""

from typing import Protocol

import dagster as dg

from harvest_dagster.harvest.room import ROOM
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.postgres.connect import Patience, connect
from harvest_dagster.text import printable
from harvest_dagster.work.described import checks_of, judged_by
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import CheckText, Room, Verdict

TICK = Patience(connect=3, statement=10)
"""Nobody waits for long for a look; a query that finds all of a table dead may take a while."""
_ERROR, _WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


class LedResource(Protocol):
    """A resource of something that is led."""

    def led(self) -> Led:
        """Return what is led; raise a ConfigError that names the field."""


def severity(verdict: Verdict) -> dg.AssetCheckSeverity:
    """Return how bad it would be if the check were red."""
    return _ERROR if verdict.serious else _WARN


def evaluation(names: Names, verdict: Verdict) -> dg.AssetCheckEvaluation:
    """Return a verdict as the sensor reports it."""
    return dg.AssetCheckEvaluation(
        asset_key=names.asset(verdict.asset),
        check_name=verdict.check,
        passed=verdict.passed,
        severity=severity(verdict),
        description=printable(verdict.says),
    )


def harvest_checks(names: Names) -> list[dg.AssetChecksDefinition]:
    """Make the checks of a harvest that may be run from the UI."""
    return led_checks(names, ROOM)


def led_checks(names: Names, room: Room) -> list[dg.AssetChecksDefinition]:
    """Make the checks of what a room leads that may be run from the UI."""
    return [_check(names, room, check) for check in checks_of(room)]


def _check(names: Names, room: Room, check: CheckText) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=names.asset(check.asset),
        name=check.name,
        description=names.translator.check_description(names.key, check),
        required_resource_keys={names.key},
    )
    def run(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        resource: LedResource = getattr(context.resources, names.key)
        led = resource.led()
        with connect(led.postgres_url, "check", TICK, by_index=True) as connection:
            found = judged_by(room, check, connection, led)
        return dg.AssetCheckResult(
            passed=found.passed, severity=severity(found), description=printable(found.says)
        )

    return run
