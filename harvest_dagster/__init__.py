"""harvest_dagster: messages stashed in your transaction, published once and in order.

This is the public API; everything else may change between versions.
"""

from harvest_dagster.config import Settings, load_settings
from harvest_dagster.errors import (
    ConfigError,
    EmbeddedError,
    HarvestError,
    MessageError,
    OutboxError,
    TransactionError,
)
from harvest_dagster.outbox import Message, Outbox, astash, stash

__all__ = [
    "ConfigError",
    "EmbeddedError",
    "HarvestError",
    "Message",
    "MessageError",
    "Outbox",
    "OutboxError",
    "Settings",
    "TransactionError",
    "astash",
    "load_settings",
    "stash",
]
