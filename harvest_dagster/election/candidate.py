"""A candidate for the leadership of an outbox's shards, as in NELI.

Candidates join one consumer group on the leader topic; whoever Kafka gives partition n to leads
shard n. Kafka decides; the lease row in PostgreSQL shows the decision, and its epoch fences with
it. Where no Kafka is asked, who comes first leads: see `first_come`.

    your thread         start() stop()           leads() trusted() lease()
                               |                           |
                               v                           v
    candidate's thread  poll -> prove to Kafka  ------> [terms]  what is held, and until
                         ^      (commit an offset),        |     when it can be trusted
                         |      renew or acquire           |
                         +------ every heartbeat           | trust runs out
                               |                           v
    dispatcher's thread        +--- queue ---> listener.acquired, listener.fenced
                                      |
    one thread each                   +------> listener.revoked

The candidate's thread alone touches the consumer and the lease's connection. It may block, on
PostgreSQL for a few seconds a call; it does not wait for Kafka, whose answer to a proof comes with
a later poll. Nobody counts on it all the same: trust in a term ends by the clock, at the beginning
of the last full proof (Kafka's, then PostgreSQL's) plus the session timeout less a margin, so
before Kafka can have replaced us; and it is the dispatcher that fences then.

The dispatcher's thread blocks on its queue, or on a listener that does not return at once; even
then `trusted` tells the truth. Only `revoked` may block: it is waited for, `drain_seconds` at
most, and the candidate's thread goes on to prove its leadership meanwhile. When Kafka itself
revokes, that is inside its rebalance callback, where nothing can be polled: there the thread does
wait for Kafka's answers, and if a broker hangs just then, it hangs too, after having been fenced.

A term that was fenced never comes back. When a proof succeeds later, a new one is acquired, with
a new epoch.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from enum import StrEnum

from harvest_dagster.election.dispatcher import Dispatcher, Listener
from harvest_dagster.election.presence import Presence
from harvest_dagster.election.registry import Registry
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.election.standing import HANGS, RESIGNED, Standing
from harvest_dagster.election.terms import Terms
from harvest_dagster.election.trouble import Trouble
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.topics import ensure_topic
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.connect import UNAVAILABLE
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.text import one_line

_LOGGER = logging.getLogger("harvest_dagster.election")
_REACH_SECONDS = 3.0
_RETRY_SECONDS = 1.0


class State(StrEnum):
    """The life of a candidate, and of a harvest."""

    CREATED = "created"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Candidate:
    """Stands for election from `start` to `stop`, through any failure that may pass."""

    def __init__(
        self,
        settings: CandidateSettings,
        listener: Listener,
        on_failure: Callable[[BaseException], None] = lambda _failure: None,
    ) -> None:
        self.settings, self._on_failure = settings, on_failure
        label = settings.label or f"{socket.gethostname()}:{os.getpid()}"
        self.holder = f"{label}:{uuid.uuid4().hex[:6]}"
        self.failure: BaseException | None = None
        self._terms, self._trouble = Terms(), Trouble()
        self._registry = Registry(settings, self.holder)
        self._presence = Presence(self._registry, self._trouble)
        self._dispatcher = Dispatcher(listener, self._terms, self._fail)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="harvest-candidate", daemon=True)

    def start(self) -> None:
        """Begin to stand; whether Kafka and PostgreSQL can be reached yet does not matter."""
        if self.state is not State.CREATED:
            raise HarvestStateError(f"this candidate is {self.state}: make a new one to start")
        self._dispatcher.start()
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Hand back what is held, and leave; raise what made the candidate fail, if it did.

        Not to be called from the listener, which is waited for in here.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if self._thread.is_alive():
            self._abandon()
            raise HarvestStateError(f"the candidate did not stop within {timeout} s")
        if self.failure is not None:
            raise self.failure

    @property
    def state(self) -> State:
        """Return where in its life the candidate is."""
        stop = self._stop.is_set()
        if self._thread.ident is None:
            return State.STOPPED if stop else State.CREATED
        if not self._thread.is_alive():
            return State.STOPPED
        return State.STOPPING if stop else State.RUNNING

    @property
    def troubles(self) -> list[str]:
        """Return what keeps the candidate from leading, or may cost it the lease."""
        return self._trouble.said

    def leads(self, shard: int) -> bool:
        """Return whether new work for a shard may begin."""
        return self._terms.leads(shard)

    def trusted(self, shard: int) -> bool:
        """Return whether work for a shard may still be written; also while it is being revoked."""
        return self._terms.trusted(shard)

    def lease(self, shard: int) -> Lease | None:
        """Return the lease of a shard, with the epoch that was last seen, if it is held."""
        return self._terms.lease(shard)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._stand()
            self._presence.end()
        except BaseException as error:  # noqa: BLE001 - stop() raises it
            self._fail(error)
        finally:
            self._registry.close()
            self._dispatcher.close()

    def _stand(self) -> None:
        ready = self._ready()
        self._presence.tell()
        if not ready:
            self._stop.wait(_RETRY_SECONDS)
            return
        standing = self._standing()
        if standing is None:
            return
        try:
            reason = standing.serve(self._stop)
        finally:
            standing.close()
        if reason == RESIGNED:
            self._stop.wait(self.settings.rest_seconds)

    def _ready(self) -> bool:
        """Return whether it makes sense to stand: Kafka has the topic, and PostgreSQL answers."""
        settings = self.settings
        try:
            self._registry.ready()
            self._trouble.over("postgres")
            if settings.kafka:
                ensure_topic(
                    settings.kafka,
                    settings.leader_topic,
                    settings.shards,
                    within_seconds=_REACH_SECONDS,
                )
        except UNAVAILABLE as error:
            self._trouble.report("postgres", f"PostgreSQL: {explained(error)}")
            return False
        except UnreachableError as error:
            self._trouble.report("kafka", str(error))
            return False
        self._trouble.over("kafka")
        return True

    def _standing(self) -> Standing | None:
        """Begin to stand; return nothing if Kafka's client got no token just now."""
        try:
            return Standing(
                self.settings,
                self._terms,
                self._dispatcher,
                self._registry,
                self._trouble,
                self._presence,
            )
        except UnreachableError as error:
            self._trouble.report("kafka", str(error))
            return None

    def _abandon(self) -> None:
        """Take what is held away from a thread that hangs, and what it may yet acquire."""
        self._terms.close(HANGS)
        for shard in self._terms.shards():
            lease = self._terms.fence(shard, HANGS)
            if lease is not None:
                self._dispatcher.lost(lease, HANGS)

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            _LOGGER.error("the candidate of %s ends: %s", self.settings.name, one_line(error))
            self.failure = error
            self._on_failure(error)
        self._stop.set()
