"""What a candidate is set up with."""

from __future__ import annotations

from dataclasses import dataclass, field

from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.lease import Veto
from harvest_dagster.ledger.words import OUTBOX


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSettings:
    """Where a candidate stands, for what, and how long a lost one can go unnoticed.

    Without `kafka` nobody is asked who leads: who comes first does, as long as it renews its lease.

    A leader trusts a proof for `session_timeout_ms` less `margin_seconds`; it is replaced after
    the whole of `session_timeout_ms`. `drain_seconds` is the longest that a revoked leader may take
    to finish; `rest_seconds` is how long one that was asked to resign stays away. A `label` names
    the holder of the lease, instead of this machine and process. The `word` says what is led under
    the name, which nothing else is; the `veto`, what else may keep it from leading.
    """

    name: str
    word: str = OUTBOX
    postgres_url: str = field(repr=False)
    leader_topic: str = ""
    leader_group: str = ""
    kafka: KafkaConfig = field(default_factory=dict, repr=False)
    label: str | None = None
    veto: Veto | None = None
    shards: int = 1
    session_timeout_ms: int = 6000
    heartbeat_seconds: float = 1.0
    margin_seconds: float = 1.0
    drain_seconds: float = 10.0
    rest_seconds: float = 4.0

    def __post_init__(self) -> None:
        names = ("leader_topic", "leader_group") if self.kafka else ()
        for key in ("name", "word", *names):
            if not getattr(self, key):
                raise ConfigError(f"{key} is empty; give it a name")
        if self.shards < 1:
            raise ConfigError(f"shards is {self.shards}; give 1 or more")
        if self.drain_seconds < 0 or self.rest_seconds < 0:
            raise ConfigError("drain_seconds and rest_seconds can't be below 0")
        if self.margin_seconds < 0 or not 0 < self.heartbeat_seconds <= self.trust_seconds / 2:
            raise ConfigError(
                f"heartbeat_seconds is {self.heartbeat_seconds}; give more than 0, and no more than"
                " half of session_timeout_ms less margin_seconds, so that one proof may fail"
            )

    @property
    def session_seconds(self) -> float:
        """How long Kafka waits for a silent leader."""
        return self.session_timeout_ms / 1000

    @property
    def trust_seconds(self) -> float:
        """How long a leader may count on a proof."""
        return self.session_seconds - self.margin_seconds
