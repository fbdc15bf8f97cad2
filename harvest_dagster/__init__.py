"""harvest_dagster: messages stashed in your transaction, published once and in order.

What stands in `__all__` here, and of `harvest_dagster.harvest`, `.spark`, `.orchestration` and
`.testing`, is the public API; everything else may change between versions.
"""

from harvest_dagster.config import Settings, load_settings
from harvest_dagster.errors import (
    ClockError,
    ConfigError,
    EmbeddedError,
    FencedError,
    HarvestError,
    HarvestStateError,
    KafkaError,
    MessageError,
    OutboxError,
    RivalError,
    TransactionError,
)
from harvest_dagster.outbox import Message, Outbox, astash, stash

__all__ = [
    "ClockError",
    "ConfigError",
    "EmbeddedError",
    "FencedError",
    "HarvestError",
    "HarvestStateError",
    "KafkaError",
    "Message",
    "MessageError",
    "Outbox",
    "OutboxError",
    "RivalError",
    "Settings",
    "TransactionError",
    "astash",
    "load_settings",
    "stash",
]
