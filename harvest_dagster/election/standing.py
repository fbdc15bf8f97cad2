"""One candidacy: from joining the group to leaving it. All of it runs on the candidate's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial

from confluent_kafka import KafkaException
from psycopg.errors import LockNotAvailable

from harvest_dagster.clock import Deadline, now
from harvest_dagster.election.dispatcher import Dispatcher
from harvest_dagster.election.first_come import FirstCome
from harvest_dagster.election.group import Group, is_expelled, is_rebalance, is_topic_gone
from harvest_dagster.election.presence import Presence
from harvest_dagster.election.registry import Registry
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.election.terms import Terms
from harvest_dagster.election.trouble import Trouble
from harvest_dagster.errors import FencedError, RivalError
from harvest_dagster.kafka import refusals as kafka_refusals
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres import refusals
from harvest_dagster.postgres.connect import UNAVAILABLE

_POLL_SECONDS = 0.1
_ANSWER_SECONDS = 0.01
_RETRY_SECONDS = 0.05
_SILENT_SECONDS = 1.0
"""A proof is answered within milliseconds: after so long Kafka does not answer."""
_DRAIN_POLL_SECONDS = 0.02

STOPPED = "the candidate stops"
RESIGNED = "asked to resign"
NO_DATABASE = "PostgreSQL can't be reached from here"
NO_TOPIC = "the leader topic is gone"
REBALANCED = "Kafka gave the shard to another candidate"
EXPELLED = "Kafka's session is over"
UNDRAINED = "the work was not finished within drain_seconds"
FAILED = "the candidate failed"
HANGS = "the candidate hangs"


class Standing:
    """Owns shards as Kafka gives them, and holds a lease for each as long as it can be proved."""

    def __init__(
        self,
        settings: CandidateSettings,
        terms: Terms,
        dispatcher: Dispatcher,
        registry: Registry,
        trouble: Trouble,
        presence: Presence,
    ) -> None:
        self._settings, self._terms, self._dispatcher = settings, terms, dispatcher
        self._registry, self._trouble, self._presence = registry, trouble, presence
        self._next_proof = self._next_settling = 0.0
        self._failures = 0
        self._database_failed_at: float | None = None
        self._leave: str | None = None
        self._revoking: dict[int, threading.Event] = {}
        self._group = self._join()

    def serve(self, stop: threading.Event) -> str:
        """Stand until stopped, or until it is better to leave; return why it ended."""
        while not stop.is_set() and self._leave is None:
            self._poll(_POLL_SECONDS if self._group.asked_at is None else _ANSWER_SECONDS)
            if now() >= self._next_settling:
                self._next_settling = now() + self._settings.heartbeat_seconds
                self._settled()
                self._hear()
                self._presence.tell()
            if now() >= self._next_proof:
                self._prove(self._group.owned)
        reason = self._leave or STOPPED
        self._revoke(self._terms.shards(), reason)
        return reason

    def _join(self) -> Group | FirstCome:
        if not self._settings.kafka:
            return FirstCome(self._settings)
        return Group(self._settings, self._assigned, self._revoked, self._lost)

    def close(self) -> None:
        """Leave the group; what is still held, because something failed, is lost."""
        self._fence(self._terms.shards(), FAILED)
        self._group.leave()

    def _poll(self, seconds: float) -> None:
        try:
            self._group.poll(seconds)
        except KafkaException as error:
            self._trouble.report("kafka", f"Kafka: {kafka_refusals.explained(error)}")
            if is_topic_gone(error):
                self._leave = NO_TOPIC

    def _hear(self) -> None:
        """Report that Kafka can't be reached, or that it can be again; a leader has its proofs."""
        trouble, asked_at = self._group.trouble(), self._group.asked_at
        if trouble is None:
            return
        if self._group.owned:
            unanswered = asked_at is not None and now() - asked_at > _SILENT_SECONDS
        else:
            unanswered = not self._group.answers()
        if unanswered:
            self._trouble.report("kafka", trouble)
        elif not self._group.owned:
            self._reached()

    def _reached(self) -> None:
        self._group.reached()
        self._trouble.over("kafka")

    def _assigned(self) -> None:
        self._reached()
        self._next_proof = 0.0

    def _revoked(self, shards: list[int]) -> None:
        self._revoke(shards, REBALANCED)

    def _lost(self, shards: list[int]) -> None:
        self._fence(shards, EXPELLED)

    def _fence(self, shards: Iterable[int], reason: str) -> None:
        for shard in shards:
            lease = self._terms.fence(shard, reason)
            if lease is not None:
                self._dispatcher.lost(lease, reason)

    def _prove(self, owned: Iterable[int]) -> None:
        """Prove to Kafka that we own the shards, then to PostgreSQL; do not wait for Kafka."""
        if not self._group.owned:
            self._trouble.over("rival")
            self._schedule(proved=True)
            return
        try:
            asked_at = self._group.prove()
        except KafkaException as error:
            self._refused(error)
            self._schedule(proved=False)
            return
        if asked_at is not None:
            self._reached()
            self._schedule(proved=self._answered(partial(self._hold, owned, asked_at)))

    def _refused(self, error: KafkaException) -> None:
        if is_expelled(error):
            self._fence(self._terms.shards(), EXPELLED)
        if not is_rebalance(error):
            self._trouble.report("kafka", f"no proof from Kafka: {kafka_refusals.explained(error)}")

    def _schedule(self, *, proved: bool) -> None:
        self._failures = 0 if proved else self._failures + 1
        heartbeat = self._settings.heartbeat_seconds
        wait = heartbeat if proved else min(heartbeat, _RETRY_SECONDS * 2**self._failures)
        self._next_proof = now() + wait

    def _hold(self, owned: Iterable[int], asked_at: float) -> None:
        until = asked_at + self._settings.trust_seconds
        held = [lease for shard in self._terms.shards() if (lease := self._terms.lease(shard))]
        free = sorted(set(owned).difference(lease.shard for lease in held))
        for lease in held:
            self._renew(lease, until)
        self._settle()
        for shard in free:
            self._acquire(shard, until)

    def _acquire(self, shard: int, until: float) -> None:
        if until <= now():
            return  # by a proof that took so long a term would be over before it begins
        lease = self._registry.acquire(shard, self._left(until))
        if lease is not None and self._terms.begin(lease, until):
            self._dispatcher.acquired(lease)

    def _renew(self, held: Lease, until: float) -> None:
        try:
            lease, renewal = self._registry.renew(held, self._left(until))
        except FencedError as error:
            self._trouble.report("holder", f"{error}; do two groups harvest {held.name}?")
            self._fence([held.shard], str(error))
            return
        self._trouble.over("holder")
        self._terms.extend(lease, until)
        if renewal.resign:
            self._leave = RESIGNED

    def _left(self, until: float) -> float:
        """Return what is left of Kafka's session, by the proof and not by when it is written down.

        A tour in another process has only the row to trust.
        """
        return until + self._settings.margin_seconds - now()

    def _settled(self) -> bool:
        return not self._terms.unsettled or self._answered(self._settle)

    def _settle(self) -> None:
        """Write down what was lost; before a lease is taken back, since this would end it."""
        while self._terms.unsettled:
            self._registry.fenced(*self._terms.unsettled[0])
            self._terms.unsettled.popleft()

    def _answered(self, question: Callable[[], None]) -> bool:
        """Ask PostgreSQL; return whether it could answer."""
        try:
            question()
        except LockNotAvailable:
            self._trouble.report("lock", "a write of the last leader still holds the lease")
            return False
        except UNAVAILABLE as error:
            self._trouble.report("postgres", f"PostgreSQL: {refusals.explained(error)}")
            self._make_room()
            return False
        except RivalError as error:
            self._trouble.report("rival", str(error))
            return False
        self._database_failed_at = None
        self._trouble.over("postgres", "lock", "rival")
        return True

    def _make_room(self) -> None:
        """Leave, if it lasts, to a candidate that can reach PostgreSQL from where it is."""
        self._database_failed_at = self._database_failed_at or now()
        if now() - self._database_failed_at > self._settings.session_seconds:
            self._leave = NO_DATABASE

    def _revoke(self, shards: Iterable[int], reason: str) -> None:
        """Let the listener finish, for so long; go on to prove leadership meanwhile."""
        leases = [lease for shard in shards if (lease := self._terms.ending(shard))]
        waits = {lease.shard: self._tell_revoked(lease) for lease in leases}
        deadline = Deadline(self._settings.drain_seconds)
        while (left := self._unfinished(waits)) and not deadline.over:
            waits[left[0]].wait(_DRAIN_POLL_SECONDS)
            if now() >= self._next_proof:
                self._prove(owned=())
            if not self._group.in_callback:
                self._poll(0.0)  # the answer to the proof comes with it
        self._fence(self._unfinished(waits), UNDRAINED)
        for lease in leases:
            self._revoking.pop(lease.shard, None)
            if self._terms.end(lease.shard) is not None:
                self._answered(partial(self._registry.revoked, lease, reason))
        self._settled()

    def _tell_revoked(self, lease: Lease) -> threading.Event:
        """Have the listener hear of it once, also if Kafka revokes in the midst of a hand-over."""
        if lease.shard not in self._revoking:
            self._revoking[lease.shard] = self._dispatcher.revoked(lease)
        return self._revoking[lease.shard]

    def _unfinished(self, waits: dict[int, threading.Event]) -> list[int]:
        held = self._terms.shards()
        return [shard for shard, done in waits.items() if shard in held and not done.is_set()]
