"""The candidacy of this process for an outbox, which lasts for as long as the sensor ticks.

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from harvest_dagster.election.candidate import Candidate, State
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.clients import connect
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.ledger import lease as leases
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.orchestration.pulse import Pulse
from harvest_dagster.orchestration.topics import TopicCounts
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import one_line
from harvest_dagster.work import tours

_log = logging.getLogger(__name__)
Tell: TypeAlias = Callable[[], None]
_GUARD_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_LEAVE_SECONDS = 10.0
"""For Kafka's part of a hand-over, when the tour has settled."""
_SUCCESSOR_SECONDS = 20.0
"""Who stands by leads within this time; so does a code server that was loaded anew."""
_PORT, _SCHEMA = "5432", "public"
_LOOPBACK = dict.fromkeys(("127.0.0.1", "::1", ""), "localhost")


class Candidacy:
    """Stands for election on behalf of one sensor."""

    def __init__(
        self,
        config: HarvestConfig,
        sensor: str,
        topics: Sequence[str],
        orphaned: Tell,
        pulse: Pulse,
        successor_seconds: float = _SUCCESSOR_SECONDS,
    ) -> None:
        self.config, self.sensor, self._orphaned = config, sensor, orphaned
        self._pulse, self._successor_seconds = pulse, successor_seconds
        self._settings = Harvesting(config).candidate
        self._candidate = Candidate(self._settings, self)
        self.topics = TopicCounts(config.base_kafka, topics)
        self.guard = threading.Thread(target=self._watch, name="harvest-guard", daemon=True)
        self._candidate.start()
        self.guard.start()

    @property
    def holder(self) -> str:
        """What the lease's row calls this process."""
        return self._candidate.holder

    @property
    def table(self) -> str:
        """Which table of which database it is about: two locations may give it one name."""
        return "/".join(table_of(self.config))

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
        self.topics.close()
        with suppress(Exception):  # the candidate has logged it, and a tick tells of it
            self._candidate.stop(self._settings.drain_seconds + _LEAVE_SECONDS)

    def acquired(self, lease: Lease) -> None:
        """Leave it to the next tick to start a tour; called by the candidate."""

    def fenced(self, lease: Lease) -> None:
        """Leave it to the tour's own watch, which has lost its trust by now."""

    def revoked(self, lease: Lease) -> None:
        """Let the tour end in good order; called by the candidate, which waits."""
        deadline = time.monotonic() + self._settings.drain_seconds
        with suppress(psycopg.Error), connect(self.config, "revoke") as connection:
            tours.ask_to_drain(connection, lease.name, lease.shard)
            while time.monotonic() < deadline and tours.lives(connection, lease.name, lease.shard):
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
        deadline = time.monotonic() + self._successor_seconds
        try:
            while time.monotonic() < deadline:
                if self._is_led():
                    return
                time.sleep(_GUARD_SECONDS)
            self._orphaned()
        except Exception as error:  # noqa: BLE001 - whatever Dagster's storage raises
            _log.warning("that nobody leads could not be reported: %s", one_line(error))

    def _is_led(self) -> bool:
        with suppress(psycopg.Error), connect(self.config, "guard") as connection:
            return any(not row.expired for row in leases.read(connection, self.config.name))
        return False


_candidacies: dict[str, Candidacy] = {}
_pulses: dict[str, Pulse] = {}
_lock = threading.Lock()


def _nothing() -> None:
    """Tell nobody."""


def candidacy_of(
    config: HarvestConfig, sensor: str, topics: Sequence[str], orphaned: Tell = _nothing
) -> Candidacy:
    """Find this process's candidacy for an outbox, or make it.

    `orphaned` is called when it has resigned for want of ticks, and nobody else has come to lead.

    It is made anew when it has ended, or is to be configured in another way; the old one hands over
    first, outside of the lock, so that no other harvest's tick waits for it.
    """
    with _lock:
        _refuse_doubles(config, sensor)
        pulse = _pulses.setdefault(config.name, Pulse())
        pulse.tick()
    return _standing(config, sensor, topics, orphaned, pulse)


def _standing(
    config: HarvestConfig, sensor: str, topics: Sequence[str], orphaned: Tell, pulse: Pulse
) -> Candidacy:
    with _lock:
        found = _candidacies.get(config.name)
        if found is None:
            found = _candidacies[config.name] = Candidacy(config, sensor, topics, orphaned, pulse)
        if not found.over and found.config == config:
            return found
    found.stop()
    with _lock:
        if _candidacies.get(config.name) is found:  # else another tick was faster
            del _candidacies[config.name]
    if found.failure is not None:
        raise HarvestStateError(str(found.failure))
    return _standing(config, sensor, topics, orphaned, pulse)


def _refuse_doubles(config: HarvestConfig, sensor: str) -> None:
    """Refuse a second harvest of a table, and a second table under a harvest's name."""
    for found in _candidacies.values():
        if found.over or found.sensor == sensor:
            continue
        same = table_of(found.config) == table_of(config)
        if same and found.config.name == config.name:
            raise HarvestStateError(
                f"the sensors {found.sensor} and {sensor} both lead {config.name}: turn one of them"
                " off"
            )
        if same:
            raise HarvestStateError(
                f"the sensors {found.sensor} and {sensor} harvest the same table {config.outbox},"
                f" as {found.config.name} and as {config.name}: each message would be published"
                " twice; turn one of them off, and take its harvest out of the code"
            )
        if found.config.name == config.name:
            raise HarvestStateError(
                f"the sensors {found.sensor} and {sensor} harvest two tables, {found.config.outbox}"
                f" and {config.outbox}, of two places, under one name, {config.name}: give one of"
                " them a name of its own, by NeliResource(name=...)"
            )


def table_of(config: HarvestConfig) -> tuple[str, str, str, str]:
    """Tell which table of which database a harvest is of, however its address is written."""
    place = conninfo_to_dict(config.postgres.get_secret_value())
    table = TableName.parse(config.outbox)
    host = str(place.get("host", "")).lower()
    return (
        f"{_LOOPBACK.get(host, host)}:{place.get('port', _PORT)}",
        str(place.get("dbname", place.get("user", ""))),
        table.schema or _SCHEMA,
        table.table,
    )
