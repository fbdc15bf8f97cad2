"""The outbox that assets stash into."""

from collections.abc import Iterable

import dagster as dg
from sqlalchemy.orm import Session

from harvest_dagster import Message, load_settings, stash


class OutboxResource(dg.ConfigurableResource[None]):
    """An outbox by its table's name; without one, the one that the settings name."""

    table: str | None = None

    def stash(self, session: Session, messages: Message | Iterable[Message]) -> int:
        """Stash into this outbox, inside the session's transaction."""
        return stash(session, messages, outbox=load_settings(outbox=self.table).outbox)
