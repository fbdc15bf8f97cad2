"""What the sensor does about one shard: wait, or start a tour.

    leads   tour's row   Dagster's run        then
    no      -            -                    stand by
    yes     alive        in progress          say how it goes; after an hour ask for its successor,
                                              to whom it hands over when that has begun
    yes     -            none in progress     start a tour, after a pause if the last ones failed
    yes     silent       started              its process is gone: report that, and start another
    yes     -            in progress          it is starting, or ending

What other holders' runs have left behind is reported first: see `burying`.

A tour takes up an epoch of its own, so that one which was only believed to be gone writes nothing
more. The run's key has the epoch and the last run in it: so a repeated tick starts no second tour,
and a run that ended before it took its epoch keeps no other from starting.
"""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg
from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.orchestration.burying import bury, bury_forsaken, silence
from harvest_dagster.orchestration.candidacy import Candidacy
from harvest_dagster.orchestration.part_names import (
    EPOCH_TAG,
    HOLDER_TAG,
    OUTBOX_TAG,
    SHARD_TAG,
    TABLE_TAG,
    Names,
)
from harvest_dagster.text import ages
from harvest_dagster.work.described import just_now
from harvest_dagster.work.led import Led
from harvest_dagster.work.status import WorkStatus
from harvest_dagster.work.tours import TourRow

_RUNS = 8
_LONG_SECONDS = 3600.0
"""After so long a tour is followed by another, so that no run's log grows without an end."""
_SHORT_SECONDS = 60.0
"""A tour that lasted for longer did not fail because of how things are set up."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 300.0
_IN_PROGRESS = {
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
}


@dataclass(frozen=True, slots=True)
class Step:
    """What a tick says of a shard, and the tour that it asks for, if any."""

    line: str
    request: dg.RunRequest | None = None


class Supervisor:
    """Looks after the tours of whatever is led, in the tick of a moment; `op` is a tour's first."""

    def __init__(
        self,
        instance: DagsterInstance,
        names: Names,
        candidacy: Candidacy,
        status: WorkStatus,
        op: str,
        now: float,
    ) -> None:
        self._instance, self._names, self._op, self._now = instance, names, op, now
        self._candidacy, self._status = candidacy, status

    def step(self, shard: int) -> Step:
        """Decide about one shard."""
        lease = next((row for row in self._status.leases if row.shard == shard), None)
        if lease is None or not self._candidacy.leads(shard):
            return Step(_stands_by(lease, self._candidacy))
        tour = next((row for row in self._status.tours if row.shard == shard), None)
        runs = self._runs(shard)
        in_progress = [record for record in runs if _goes_on(record)]
        ours = [record for record in in_progress if _of(record, self._candidacy.holder)]
        if ours != in_progress:  # a query of its own, which only a change of holders is worth
            which, holder = self._which(shard), self._candidacy.holder
            bury_forsaken(self._instance, *which, holder, tour, self._now)
        leads = f"leader, epoch {lease.epoch}"
        for record in ours:
            if tour is None or tour.run != record.dagster_run.run_id:
                return Step(f"{leads}, a tour is {record.dagster_run.status.value.lower()}")
            if tour.alive and tour.started_seconds < _LONG_SECONDS:
                return Step(f"{leads}, {_goes(self._candidacy.led, tour)}")
            if tour.alive:
                return self._start(
                    f"{leads}, {_goes(self._candidacy.led, tour)}", lease, shard, runs
                )
            if tour.ended or record.dagster_run.status != DagsterRunStatus.STARTED:
                return Step(f"{leads}, the tour ends")
            bury(self._instance, record, silence(tour))
        return self._start(leads, lease, shard, runs)

    def _which(self, shard: int) -> tuple[str, dict[str, str]]:
        """Return the job and the tags of a shard's tours; others' may have the same job's name."""
        return self._names.job("tour"), {TABLE_TAG: self._candidacy.place, SHARD_TAG: str(shard)}

    def _runs(self, shard: int) -> list[RunRecord]:
        job, tags = self._which(shard)
        wanted = RunsFilter(job_name=job, tags=tags)
        return [*self._instance.get_run_records(wanted, limit=_RUNS)]

    def _start(self, leads: str, lease: LeaseRow, shard: int, runs: list[RunRecord]) -> Step:
        left, failed = _pause(runs, self._now)
        if left > 0:
            return Step(
                f"{leads}, but the last {_times(failed)} failed: the next starts in {ages(left)};"
                " open the last run to see why"
            )
        epoch, last = str(lease.epoch), runs[0].dagster_run.run_id if runs else "first"
        return Step(
            f"{leads}, a tour is asked for",
            dg.RunRequest(
                run_key=f"{self._names.key}/{shard}/{epoch}/{last}",
                run_config={"ops": {self._op: {"config": {"shard": shard}}}},
                tags={
                    OUTBOX_TAG: self._names.key,
                    TABLE_TAG: self._candidacy.place,
                    SHARD_TAG: str(shard),
                    HOLDER_TAG: lease.holder,
                    EPOCH_TAG: epoch,
                },
            ),
        )


def _stands_by(lease: LeaseRow | None, candidacy: Candidacy) -> str:
    troubles = "".join(f"; {trouble}" for trouble in candidacy.troubles)
    if lease is not None and not lease.expired and lease.holder != candidacy.holder:
        return f"standing by, {lease.holder} leads under epoch {lease.epoch}{troubles}"
    return f"standing for election{troubles}"


def _goes(led: Led, tour: TourRow) -> str:
    ending = ", and is to end" if tour.drain else ""
    return (
        f"tour running for {ages(tour.started_seconds)}{ending},"
        f" {tour.done:,} {led.figures[0].name}{just_now(led, tour.figures)}"
    )


def _of(record: RunRecord, holder: str) -> bool:
    return record.dagster_run.tags.get(HOLDER_TAG) == holder


def _goes_on(record: RunRecord) -> bool:
    return record.dagster_run.status in _IN_PROGRESS


def _pause(runs: list[RunRecord], now: float) -> tuple[float, int]:
    """Return how long to wait still, and how many tours in a row have failed soon."""
    failed = 0
    for record in runs:
        if record.dagster_run.status != DagsterRunStatus.FAILURE or _lasted(record):
            break
        failed += 1
    if not failed:
        return 0.0, 0
    pause = min(_FIRST_PAUSE_SECONDS * 2 ** (failed - 1), _LONGEST_PAUSE_SECONDS)
    ended = runs[0].end_time or runs[0].update_timestamp.timestamp()
    return ended + pause - now, failed


def _lasted(record: RunRecord) -> bool:
    begin, end = record.start_time, record.end_time
    return begin is not None and end is not None and end - begin > _SHORT_SECONDS


def _times(number: int) -> str:
    return "tour" if number == 1 else f"{number} tours"
