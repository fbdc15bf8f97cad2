"""The sensor that holds leadership: each tick keeps the candidacy alive, and looks after the tour.

A tick is short and may be repeated: it reads the truth from PostgreSQL, asks Dagster for a tour if
none runs, reports what changed, and says in one line what it saw. What can't be reached is said in
that line too, and the next tick tries again.
"""

import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import dagster as dg
import psycopg

from harvest_dagster.errors import HarvestError
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.status import Status, read_status
from harvest_dagster.ledger.events import read as read_events
from harvest_dagster.orchestration.candidacy import candidacy_of
from harvest_dagster.orchestration.checks import (
    blind,
    nobody_stands,
    table_verdict,
    verdicts,
)
from harvest_dagster.orchestration.cursor import Cursor, pace_of
from harvest_dagster.orchestration.names import Names
from harvest_dagster.orchestration.report import HISTORY_KINDS, AssetEvent, Reporter
from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.orchestration.supervise import Step, Supervisor
from harvest_dagster.orchestration.telling import ages
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.refusals import told
from harvest_dagster.text import one_line, printable

if TYPE_CHECKING:
    from dagster._core.instance import InstanceRef

_SECONDS = 2  # Dagster looks every 5 s who is due, and what is due in 4.9 s waits for 10
_EVENTS = 50


def leader_sensor(names: Names, topics: Sequence[str], *, running: bool) -> dg.SensorDefinition:
    """Make the sensor; `running` turns it on without anybody's hand."""
    on, off = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name=names.sensor,
        job_name=names.job("tour"),
        minimum_interval_seconds=_SECONDS,
        default_status=on if running else off,
        required_resource_keys={names.key},
        description="Leads for as long as it is on: turn it off, and leadership is handed over.",
    )
    def leader(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        harvest: HarvestResource = getattr(context.resources, names.key)
        try:
            return _tick(context, names, harvest, topics)
        except (HarvestError, psycopg.Error) as error:
            said = told(error) if isinstance(error, psycopg.Error) else one_line(error)
            return _blind(context, names, said)

    return leader


def _blind(context: dg.SensorEvaluationContext, names: Names, said: str) -> dg.SensorResult:
    """Say what can't be reached, and that nothing is known to be well until it can."""
    reporter = Reporter(names, Cursor.read(context.cursor), time.time())
    events = [*reporter.checks([*blind(said)])]
    return dg.SensorResult(skip_reason=said, cursor=reporter.said(said), asset_events=events)


def _tick(
    context: dg.SensorEvaluationContext,
    names: Names,
    harvest: HarvestResource,
    topics: Sequence[str],
) -> dg.SensorResult:
    config = harvest.config()
    candidacy = candidacy_of(
        config, names.sensor, topics, telling(context.instance_ref, names, config.name)
    )
    table, now = TableName.parse(config.outbox), time.time()
    reporter = Reporter(names, Cursor.read(context.cursor), now)
    with harvest.outbox.reading("sensor") as connection:
        status = read_status(connection, table, config.name, events=0)
        happened = read_events(connection, config.name, HISTORY_KINDS, limit=_EVENTS)
        pace = pace_of(reporter.cursor, status, now)
        judged = [*verdicts(status, config.shards, pace.still_seconds)]
        if reporter.looks_closely(judged):
            judged.append(table_verdict(connection, table))
    supervisor = Supervisor(context.instance, names, candidacy, status)
    steps = [supervisor.step(shard) for shard in range(config.shards)]
    events: list[AssetEvent] = [
        *chain(
            reporter.history(happened),
            reporter.figures(status, pace.rate),
            reporter.checks(judged),
            reporter.topics(candidacy.topics.latest),
        )
    ]
    line = told_tick(steps, status, config, candidacy.troubles)
    return _result(line, steps, events, reporter)


def _result(
    line: str,
    steps: Sequence[Step],
    events: list[AssetEvent],
    reporter: Reporter,
) -> dg.SensorResult:
    requests = [step.request for step in steps if step.request is not None]
    # Nothing is logged here: Dagster would keep a file for each tick, and the cursor has the line.
    return dg.SensorResult(
        run_requests=requests or None,
        skip_reason=None if requests else line,  # Dagster takes one of the two
        cursor=reporter.said(line),
        asset_events=events,
    )


def telling(where: "InstanceRef | None", names: Names, harvest: str) -> Callable[[], None]:
    """Make what reports to Dagster, when no tick is there to do so, that nobody leads."""

    def tell() -> None:
        if where is not None:
            with dg.DagsterInstance.from_ref(where) as instance:
                verdict = nobody_stands(harvest)
                instance.report_runless_asset_event(verdict.evaluation(names))

    return tell


def told_tick(
    steps: Sequence[Step], status: Status, config: HarvestConfig, troubles: Sequence[str]
) -> str:
    """Write what a tick saw in a line, whatever leaders and topics are called."""
    if config.shards == 1:
        said = steps[0].line
    else:
        said = "; ".join(f"shard {n}: {step.line}" for n, step in enumerate(steps))
    backlog, parked = status.backlog, status.parked
    about = "" if backlog.exact else "about "
    oldest = f", oldest {ages(backlog.oldest_seconds)}" if backlog.records else ""
    held = {topic for tour in status.tours if tour.alive for topic in tour.held}
    closed = f", {', '.join(sorted(held))} can't be published to" if held else ""
    aside = f", {parked} parked" if parked.records else ""
    more = "".join(f"; {t}" for t in troubles if t not in said)
    line = f"{said}, backlog {about}{backlog.records:,}{oldest}{closed}{aside}{more}"
    return printable(line)
