"""What a candidate says of itself in PostgreSQL: that it stands, and what troubles it."""

from __future__ import annotations

from contextlib import suppress

from psycopg.errors import InsufficientPrivilege

from harvest_dagster.clock import Deadline
from harvest_dagster.election.registry import Registry
from harvest_dagster.election.trouble import Trouble
from harvest_dagster.ledger.candidates import STAND_SECONDS
from harvest_dagster.postgres.connect import UNAVAILABLE

_UNGRANTED = (
    "this role may not write down that it stands: run `harvest outbox grant ROLE --as harvester` as"
    " the table's owner"
)


class Presence:
    """Used by the candidate's thread alone; nobody leads by it, so where it fails nothing ends."""

    def __init__(self, registry: Registry, trouble: Trouble) -> None:
        self._registry, self._trouble = registry, trouble
        self._said: list[str] = []
        self._next = Deadline(0)

    def tell(self) -> None:
        """Write it down if it has changed, and every few seconds; it may block on PostgreSQL."""
        troubles = self._trouble.said
        if troubles == self._said and not self._next.over:
            return
        self._said, self._next = troubles, Deadline(STAND_SECONDS)
        try:
            with suppress(*UNAVAILABLE):
                self._registry.stand(troubles)
        except InsufficientPrivilege:
            self._trouble.report("grants", _UNGRANTED)

    def end(self) -> None:
        """Write down that it stands no more, if PostgreSQL can be reached."""
        with suppress(InsufficientPrivilege, *UNAVAILABLE):
            self._registry.go()
