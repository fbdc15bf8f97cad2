"""An election without Kafka: every candidate may lead every shard, and who comes first does.

It stands in the place of a consumer group, with the same methods. There is nobody to prove anything
to but PostgreSQL: the lease can be taken when it has expired, and not before, which is longer than
its holder trusts it.
"""

from __future__ import annotations

import threading

from harvest_dagster.clock import now
from harvest_dagster.election.settings import CandidateSettings


class FirstCome:
    """One candidacy where Kafka is not asked; used by the candidate's thread alone."""

    in_callback = False
    asked_at: float | None = None

    def __init__(self, settings: CandidateSettings) -> None:
        self.owned = set(range(settings.shards))
        self._pause = threading.Event()

    def poll(self, seconds: float) -> None:
        """Let so much time pass."""
        self._pause.wait(seconds)

    def prove(self) -> float:
        """Return when the proof was asked for: now, since nobody need answer."""
        return now()

    def trouble(self) -> None:
        """Return nothing: Kafka is not asked."""

    def reached(self) -> None:
        """Forget nothing."""

    def answers(self) -> bool:
        """Return that nobody need answer."""
        return True

    def leave(self) -> None:
        """Leave nothing: there is no group."""
