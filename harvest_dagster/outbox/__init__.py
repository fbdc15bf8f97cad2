"""The outbox: its messages, its table, and stash."""

from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.stasher import astash, stash
from harvest_dagster.outbox.table import Outbox

__all__ = ["Message", "Outbox", "astash", "stash"]
