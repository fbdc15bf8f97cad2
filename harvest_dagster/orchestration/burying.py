"""Runs whose process is gone and of whose end nobody has told Dagster: they are reported failed.

The code server that starts a run sees its process end. When both die together, as with their
machine, Dagster keeps the run as started for ever, and each such run takes a place in the run
queue, until no tour finds one. So whoever leads next reports it.

    the tour's row is of        and                       then the run
    this run                    alive                     drains for its successor: leave it
    this run                    silent for a minute       is gone
    another run, alive          begun a minute ago        is gone: a tour that lives has fenced it
    another run, not alive      silent for a minute       is gone
"""

from __future__ import annotations

from collections.abc import Mapping

from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from harvest_dagster.orchestration.part_names import HOLDER_TAG
from harvest_dagster.text import ages
from harvest_dagster.work.tours import TourRow

GRACE_SECONDS = 60.0
"""Longer than a run takes to begin its tour, and to end when it was fenced."""
_STARTED = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED]


def bury_forsaken(
    instance: DagsterInstance,
    job: str,
    tags: Mapping[str, str],
    holder: str,
    tour: TourRow | None,
    now: float,
) -> None:
    """Report the started runs of other holders that can't be alive any more."""
    wanted = RunsFilter(job_name=job, tags=dict(tags), statuses=_STARTED)
    for record in instance.get_run_records(wanted):
        if record.dagster_run.tags.get(HOLDER_TAG) != holder and _is_gone(record, tour, now):
            bury(instance, record, "the code server that started it is gone too")


def bury(instance: DagsterInstance, record: RunRecord, why: str) -> None:
    """Report a run whose process is gone, as Dagster would find out much later, or never."""
    instance.report_run_failed(
        record.dagster_run,
        f"the tour's process is gone: {why}; another tour goes on from where it was",
    )


def silence(tour: TourRow) -> str:
    """Say for how long a tour told nothing."""
    return f"not a word for {ages(tour.seen_seconds)}"


def _is_gone(record: RunRecord, tour: TourRow | None, now: float) -> bool:
    started = record.start_time or record.create_timestamp.timestamp()
    if now - started < GRACE_SECONDS:
        return False
    if tour is None:
        return True
    if not tour.alive:
        return tour.seen_seconds > GRACE_SECONDS
    return tour.run != record.dagster_run.run_id and tour.started_seconds > GRACE_SECONDS
