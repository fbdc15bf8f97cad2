"""harvest_dagster: messages stashed in your transaction, published once and in order.

What stands in `__all__` here, and of `harvest_dagster.harvest`, `.reader`, `.spark`,
`.orchestration` and `.testing`, is the public API; everything else may change between versions.
"""

from importlib import import_module

TYPE_CHECKING = False  # as a type checker knows it too; `typing` takes longer than all of this
if TYPE_CHECKING:
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
        ReaderError,
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
    "ReaderError",
    "RivalError",
    "Settings",
    "TransactionError",
    "astash",
    "load_settings",
    "stash",
]

if not TYPE_CHECKING:  # to a type checker there is nothing here but what is imported above

    def __getattr__(name: str) -> object:
        """Import what is public when it is first used, which takes a third of a second."""
        if name in __all__:
            rooms = (import_module(f"{__name__}.{room}") for room in ("errors", "config", "outbox"))
            found = next(getattr(room, name) for room in rooms if hasattr(room, name))
            return globals().setdefault(name, found)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
