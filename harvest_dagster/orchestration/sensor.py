"""The sensor that holds leadership: each tick keeps the candidacy alive, and looks after the tour.

A tick is short and may be repeated: it reads the truth from PostgreSQL, asks Dagster for a tour if
none runs, reports what changed, and says in one line what it saw. What can't be reached is said in
that line too, and the next tick tries again.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import dagster as dg
import psycopg

from harvest_dagster.errors import HarvestError
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.ledger.events import read as read_events
from harvest_dagster.orchestration.candidacy import candidacy_of
from harvest_dagster.orchestration.checks import TICK, LedResource, evaluation
from harvest_dagster.orchestration.cursor import Cursor, pace_of
from harvest_dagster.orchestration.leaders import leaders
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.report import AssetEvent, Reporter
from harvest_dagster.orchestration.supervise import Step, Supervisor
from harvest_dagster.orchestration.topic_counts import TopicCounts
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.text import one_line, printable
from harvest_dagster.work.described import assets_of, blind, facts_of, judged, unwatched
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import Room
from harvest_dagster.work.status import WorkStatus

if TYPE_CHECKING:
    from dagster._core.instance import InstanceRef

_SECONDS = 2  # Dagster looks every 5 s who is due, and what is due in 4.9 s waits for 10
_EVENTS = 50
More: TypeAlias = "Callable[[Any, Reporter], Iterator[AssetEvent]]"
"""Reports what is known of something that is led beside its room's description."""


def leader_sensor(names: Names, topics: Sequence[str], *, running: bool) -> dg.SensorDefinition:
    """Make the sensor of a harvest; `running` turns it on without anybody's hand."""
    counts = TopicCounts(topics)
    return led_sensor(
        names,
        ROOM,
        op="mark",
        running=running,
        more=lambda led, reporter: reporter.topics(counts.latest(led.config.base_kafka)),
    )


def led_sensor(
    names: Names, room: Room, *, op: str, running: bool, more: More = lambda _led, _by: iter(())
) -> dg.SensorDefinition:
    """Make the sensor that leads; `op` is the first of the tour's job, and takes its shard."""
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
        try:
            return _tick(context, names, room, op, more)
        except (HarvestError, psycopg.Error) as error:
            said = explained(error) if isinstance(error, psycopg.Error) else one_line(error)
            return _blind(context, names, room, said)

    return leader


def _blind(
    context: dg.SensorEvaluationContext, names: Names, room: Room, said: str
) -> dg.SensorResult:
    """Say what can't be reached, and that nothing is known to be well until it can."""
    reporter = Reporter(names, room, Cursor.read(context.cursor), time.time())
    events = [*reporter.checks([*blind(room, said)])]
    _log_news(context, reporter)
    return dg.SensorResult(skip_reason=said, cursor=reporter.said(said), asset_events=events)


def _tick(
    context: dg.SensorEvaluationContext, names: Names, room: Room, op: str, more: More
) -> dg.SensorResult:
    resource: LedResource = getattr(context.resources, names.key)
    led = resource.led()
    orphaned = telling(context.instance_ref, names, room, led.name)
    candidacy = candidacy_of(room, led, names.sensor, orphaned)
    reporter = Reporter(names, room, Cursor.read(context.cursor), time.time())
    status, events = _seen(room, led, reporter)
    supervisor = Supervisor(context.instance, names, candidacy, status, op, reporter.now)
    steps = [supervisor.step(shard) for shard in range(led.candidate.shards)]
    line = line_of_tick(steps, room.about(status), candidacy.troubles)
    events += more(led, reporter)
    _log_news(context, reporter)
    return _result(line, steps, events, reporter)


def _log_news(context: dg.SensorEvaluationContext, reporter: Reporter) -> None:
    """Log what happened since the last tick.

    Dagster keeps a file for each tick that logs anything: most have nothing to say but the line.
    """
    for happened in reporter.happened:
        context.log.info(happened)


def _seen(room: Room, led: Led, reporter: Reporter) -> tuple[WorkStatus, list[AssetEvent]]:
    """Look, and return what is seen, and what of that is to be reported."""
    assets = assets_of(room)
    kinds = [kind for asset in assets for kind in asset.events]
    with connect(led.postgres_url, "sensor", TICK, by_index=True) as connection:
        status = room.look(connection, led)
        happened = read_events(connection, led.name, kinds, limit=_EVENTS)
        waits = room.waits(status) > 0
        pace = pace_of(reporter.cursor, status.done, reporter.now, waits=waits)
        verdicts = [*judged(room, led, status, pace.still_seconds)]
        if reporter.looks_closely(verdicts):
            verdicts += room.inspect(connection, led)
    facts = facts_of(room, led, status)
    return status, [
        *reporter.history(assets, happened),
        *reporter.figures(facts, pace.rate, leaders(status), waits=waits),
        *reporter.checks(verdicts),
    ]


def _result(
    line: str,
    steps: Sequence[Step],
    events: list[AssetEvent],
    reporter: Reporter,
) -> dg.SensorResult:
    requests = [step.request for step in steps if step.request is not None]
    return dg.SensorResult(
        run_requests=requests or None,
        skip_reason=None if requests else line,  # Dagster takes one of the two
        cursor=reporter.said(line),
        asset_events=events,
    )


def telling(where: "InstanceRef | None", names: Names, room: Room, name: str) -> Callable[[], None]:
    """Make what reports to Dagster, when no tick is there to do so, that nobody leads."""

    def tell() -> None:
        if where is not None:
            with dg.DagsterInstance.from_ref(where) as instance:
                for verdict in unwatched(room, name):
                    instance.report_runless_asset_event(evaluation(names, verdict))

    return tell


def line_of_tick(steps: Sequence[Step], about: str, troubles: Sequence[str]) -> str:
    """Write what a tick saw in a line, whatever leaders and topics are called."""
    said = "; ".join(
        step.line if len(steps) == 1 else f"shard {number}: {step.line}"
        for number, step in enumerate(steps)
    )
    more = "".join(f"; {trouble}" for trouble in troubles if trouble not in said)
    return printable(f"{said}{about}{more}")
