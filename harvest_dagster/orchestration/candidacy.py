"""The candidacy of this process for whatever is led, which lasts for as long as the sensor ticks.

    sensor's tick (a thread of Dagster's)     candidacy_of() -> leads(), troubles
                                                 |
                                                 v  made on the first tick, never at import
    candidate's threads (election.candidate)  prove leadership to Kafka, renew the lease's row
                                                 |
                                                 v  revoked(): ask the tour to drain, and wait
    guard's thread                            stops the candidate when the pulse is silent: see
                                              `pulse`

A code location that is reloaded, or whose sensor is switched off, is not told: its ticks stop. So
the guard resigns then, and whoever ticks next is elected. The tick itself blocks on nothing here,
unless it finds that its settings have changed: then it waits for the old candidacy to hand over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from harvest_dagster.clock import Deadline
from harvest_dagster.election.candidate import Candidate, State
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.orchestration.pulse import Pulse
from harvest_dagster.postgres.connect import connect
from harvest_dagster.text import one_line
from harvest_dagster.work import tours
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import Room

_log = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[], None]
_GUARD_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_LEAVE_SECONDS = 10.0
"""For Kafka's part of a hand-over, when the tour has settled."""
_SUCCESSOR_SECONDS = 20.0
"""Who stands by leads within this time; so does a code server that was loaded anew."""
_PORT = "5432"
_LOOPBACK = dict.fromkeys(("127.0.0.1", "::1", ""), "localhost")


class Candidacy:
    """Stands for election on behalf of one sensor."""

    def __init__(
        self,
        room: Room,
        led: Led,
        sensor: str,
        orphaned: Tell,
        pulse: Pulse,
        successor_seconds: float = _SUCCESSOR_SECONDS,
    ) -> None:
        self.room, self.led, self.sensor = room, led, sensor
        self._orphaned, self._pulse = orphaned, pulse
        self._successor_seconds = successor_seconds
        self._settings = room.candidate(led)
        self._candidate = Candidate(self._settings, self)
        self.guard = threading.Thread(target=self._watch, name="harvest-guard", daemon=True)
        self._candidate.start()
        self.guard.start()

    @property
    def holder(self) -> str:
        """What the lease's row calls this process."""
        return self._candidate.holder

    @property
    def place(self) -> str:
        """What it works on, and in which database: two locations may give it one name."""
        return "/".join(place_of(self.room, self.led))

    @property
    def troubles(self) -> list[str]:
        """What keeps it from leading, or may do so."""
        return [*self._candidate.troubles, *filter(None, [self._pulse.trouble])]

    def leads(self, shard: int) -> bool:
        """Whether a tour of this shard is ours to start."""
        return self._candidate.leads(shard)

    @property
    def failure(self) -> BaseException | None:
        """What ended it, if it has ended of itself."""
        return self._candidate.failure

    @property
    def over(self) -> bool:
        """Whether it stands no more."""
        return self._candidate.state in {State.STOPPING, State.STOPPED}

    def stop(self) -> None:
        """Hand over what is held, and leave; the tour has all its time to settle."""
        with suppress(Exception):  # the candidate has logged it, and a tick tells of it
            self._candidate.stop(self._settings.drain_seconds + _LEAVE_SECONDS)

    def acquired(self, lease: Lease) -> None:
        """Leave it to the next tick to start a tour; called by the candidate."""

    def fenced(self, lease: Lease) -> None:
        """Leave it to the tour's own watch, which has lost its trust by now."""

    def revoked(self, lease: Lease) -> None:
        """Let the tour end in good order; called by the candidate, which waits."""
        deadline = Deadline(self._settings.drain_seconds)
        with suppress(psycopg.Error), self._connect("revoke") as connection:
            tours.ask_to_drain(connection, lease.name, lease.shard)
            while not deadline.over and tours.lives(connection, lease.name, lease.shard):
                time.sleep(_LOOK_SECONDS)

    def _watch(self) -> None:
        while not self.over:
            if self._pulse.is_silent:
                _log.warning("no tick of %s for %s: resigning", self.sensor, self._pulse.silence)
                self.stop()
                self._tell_if_nobody_leads()
            time.sleep(_GUARD_SECONDS)

    def _tell_if_nobody_leads(self) -> None:
        """Report it, for no tick will; a code server that was loaded anew leads within the time."""
        deadline = Deadline(self._successor_seconds)
        try:
            while not deadline.over:
                if self._is_led():
                    return
                time.sleep(_GUARD_SECONDS)
            self._orphaned()
        except Exception as error:  # noqa: BLE001 - whatever Dagster's storage raises
            _log.warning("that nobody leads could not be reported: %s", one_line(error))

    def _is_led(self) -> bool:
        with suppress(psycopg.Error), self._connect("guard") as connection:
            return any(not row.expired for row in leases.read(connection, self.led.name))
        return False

    def _connect(self, what: str) -> psycopg.Connection[object]:
        return connect(self.led.postgres_url, f"{self.led.name} {what}")


_candidacies: dict[str, Candidacy] = {}
_pulses: dict[str, Pulse] = {}
_lock = threading.Lock()


def _nothing() -> None:
    """Do nothing: nobody wants to hear."""


def candidacy_of(room: Room, led: Led, sensor: str, orphaned: Tell = _nothing) -> Candidacy:
    """Find this process's candidacy for something that a room leads, or make it.

    `orphaned` is called when it has resigned for want of ticks, and nobody else has come to lead.

    It is made anew when it has ended, or is to be configured in another way; the old one hands over
    first, outside of the lock, so that no other sensor's tick waits for it.
    """
    with _lock:
        for found in _candidacies.values():
            if not found.over and found.sensor != sensor:
                _refuse_double(found, room, led, sensor)
        pulse = _pulses.setdefault(led.name, Pulse())
        pulse.tick()
    return _standing(room, led, sensor, orphaned, pulse)


def _standing(room: Room, led: Led, sensor: str, orphaned: Tell, pulse: Pulse) -> Candidacy:
    with _lock:
        found = _candidacies.get(led.name)
        if found is None:
            found = _candidacies[led.name] = Candidacy(room, led, sensor, orphaned, pulse)
        if not found.over and found.led == led:
            return found
    found.stop()
    with _lock:
        if _candidacies.get(led.name) is found:  # else another tick was faster
            del _candidacies[led.name]
    if found.failure is not None:
        raise HarvestStateError(str(found.failure))
    return _standing(room, led, sensor, orphaned, pulse)


def _refuse_double(found: Candidacy, room: Room, led: Led, sensor: str) -> None:
    """Refuse two names for what is worked on once, and one name for two such things."""
    sensors = f"the sensors {found.sensor} and {sensor}"
    same_name = found.led.name == led.name
    same_place = found.place == "/".join(place_of(room, led))
    if same_place and same_name:
        raise HarvestStateError(f"{sensors} both lead {led.name}: turn one of them off")
    if same_place:
        raise HarvestStateError(
            f"{sensors} lead the same {_what(room, led)}, as {found.led.name} and as"
            f" {led.name}: {room.twice}; turn one of them off, and take it out of the code"
        )
    if same_name:
        raise HarvestStateError(
            f"{sensors} lead {_what(found.room, found.led)} and {_what(room, led)}, of two places,"
            f" under one name, {led.name}: give one of them a name of its own"
        )


def _what(room: Room, led: Led) -> str:
    return f"{room.word} {'.'.join(room.place(led))}"


def place_of(room: Room, led: Led) -> tuple[str, ...]:
    """Return what of which database is worked on, however its address is written."""
    place = conninfo_to_dict(led.postgres_url)
    host = str(place.get("host", "")).lower()
    return (
        f"{_LOOPBACK.get(host, host)}:{place.get('port', _PORT)}",
        str(place.get("dbname", place.get("user", ""))),
        *room.place(led),
    )
