"""What a tour's run writes into its log for as long as it lasts, whatever its work is."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
from pydantic import Field

from harvest_dagster.clock import Deadline
from harvest_dagster.errors import HarvestError
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.events import read as read_events
from harvest_dagster.postgres import refusals
from harvest_dagster.postgres.connect import connect
from harvest_dagster.text import ages, one_line, printable
from harvest_dagster.work.delegate import Delegate
from harvest_dagster.work.described import did, just_now
from harvest_dagster.work.led import done
from harvest_dagster.work.room import Room

_LOOK_SECONDS = 1.0
_EVENTS_SECONDS = 2.0
_PROGRESS_SECONDS = 60.0
_MOST_EVENTS = 50
PRIORITY = {"dagster/priority": "10"}
"""A tour waits behind no back-fill."""


class TourConfig(dg.Config):
    """Which shard to work for, and for how long."""

    shard: int = Field(default=0, description="0, unless several leaders share the work")
    minutes: float | None = Field(
        default=None,
        gt=0,
        description="end after this; else it hands over to the next tour, which the sensor starts"
        " after an hour",
    )

    @property
    def until(self) -> Deadline:
        """Return when to end, counted from now."""
        return Deadline(math.inf if self.minutes is None else self.minutes * 60)


def shown(op: str) -> dict[str, Any]:
    """Return what the Launchpad of a tour's job shows: what its first op may be given.

    Of the resources it shows nothing, which were set in code.
    """
    return {"ops": {op: {"config": TourConfig().model_dump()}}}


def follow(
    log: dg.DagsterLogManager,
    room: Room,
    tour: Delegate,
    until: Deadline,
    beside: Callable[[], object] = lambda: None,
) -> None:
    """Wait for the tour's end and log what happens meanwhile; call `beside` about every second."""
    try:
        with explained("the tour ended early"):
            logbook = Logbook(log, room, tour)
            while not tour.wait(_LOOK_SECONDS):
                logbook.write()
                beside()
                if until.over:
                    tour.drain("its time is up")
            logbook.write_events()
    finally:
        tour.close(tour.drain_seconds)
    log.info(printable(f"the tour ends: {tour.reason}"))


class Logbook:
    """Writes the run's log: what happened, and once a minute how far it is."""

    def __init__(self, log: dg.DagsterLogManager, room: Room, tour: Delegate) -> None:
        self._log, self._room, self._tour = log, room, tour
        self._seen = 0
        self._began = time.monotonic()
        self._next_events = self._next_progress = self._began
        self._last: tuple[float, Mapping[str, int]] = (self._began, {})

    def write(self) -> None:
        """Write what is due."""
        time_ = time.monotonic()
        if time_ >= self._next_events:
            self._next_events = time_ + _EVENTS_SECONDS
            self.write_events()
        if time_ >= self._next_progress:
            self._next_progress = time_ + _PROGRESS_SECONDS
            self._write_progress(time_)

    def write_events(self) -> None:
        """Write what has happened since the last time."""
        warned = {"fenced", *self._room.warnings}
        for event in self._events():
            level = self._log.warning if event.kind in warned else self._log.info
            level(described(event))

    def _events(self) -> list[Event]:
        lease, url = self._tour.work.lease, self._tour.led.postgres_url
        since = time.monotonic() - self._began + 2 * _EVENTS_SECONDS
        try:
            with connect(url, f"{lease.name} events") as connection:
                found = read_events(connection, lease.name, (), since, _MOST_EVENTS)
        except psycopg.Error as error:
            self._log.warning(f"the events could not be read: {refusals.explained(error)}")
            return []
        new = [event for event in reversed(found) if event.id > self._seen]
        self._seen = max((event.id for event in new), default=self._seen)
        return [event for event in new if event.shard == lease.shard]

    def _write_progress(self, time_: float) -> None:
        then, before = self._last
        led, figures = self._tour.led, self._tour.work.figures
        self._last = (time_, figures)
        moved = done(led, figures) - done(led, before)
        rate = moved / (time_ - then) if time_ > then else 0.0
        self._log.info(
            f"{did(led, figures, before)}, {rate:,.0f}/s{just_now(led, figures)},"
            f" running for {ages(time_ - self._began)}"
        )


def described(event: Event) -> str:
    """Write an event in a line, whatever has come into its details."""
    epoch = [] if event.epoch is None else [f"epoch {event.epoch}"]
    details = [f"{key.replace('_', ' ')} {value}" for key, value in event.detail.items()]
    return printable(f"{event.kind}: {', '.join([*epoch, *details])}")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Fail with the cause first, and without a stack of ours."""
    try:
        yield
    except (HarvestError, psycopg.Error) as error:
        cause = refusals.explained(error) if isinstance(error, psycopg.Error) else one_line(error)
        raise dg.Failure(f"{cause} ({what})", allow_retries=False) from None
