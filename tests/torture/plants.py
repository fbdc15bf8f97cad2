"""Bugs that can be planted in a candidate, so that it is seen that the bench finds them.

    fence-off      nothing holds a deposed leader off: no epoch of PostgreSQL's or Kafka's, no end
                   of its trust in the lease, and not what its candidate tells it
    purge-early    records are purged before Kafka has acknowledged them
    no-gap-watch   ids that were missing below the head are forgotten

The engine knows nothing of this: its functions are replaced, and words of its statements.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from psycopg.sql import SQL

from harvest_dagster.harvest import clients, recover
from harvest_dagster.harvest.gaps import GapWatch
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.publish_exactly_once import ExactlyOncePublisher
from harvest_dagster.harvest.stage import Round
from harvest_dagster.ledger import fence
from harvest_dagster.ledger.events import NOTED
from harvest_dagster.postgres.statements import statements

_EPOCH = " AND epoch = %(epoch)s"


def plant(bug: str) -> None:
    """Plant a bug in this process."""
    PLANTS[bug]()


def put(owner: Any, name: str, new: object) -> None:
    """Replace something of the engine's, which must be there."""
    assert hasattr(owner, name), f"{owner} has no {name} any more: look for it elsewhere"
    setattr(owner, name, new)


def _fence_off() -> None:
    text = statements("harvest_dagster.ledger", "fence.sql")["fence"].text
    assert _EPOCH in text, "there is no such fence any more: plant the bug elsewhere"
    bare: Any = text.replace(_EPOCH, "")
    put(fence, "FENCE", SQL(bare))
    put(recover, "_REMARK", fence.fenced(recover._SQL["remark"]))  # noqa: SLF001 - as below
    note = fence._SQL["note"]  # noqa: SLF001
    put(fence, "_NOTE", note.sql(fence=SQL(bare), noted=NOTED))
    put(Round, "check", lambda _self: None)
    put(Harvest, "fenced", lambda _self, _lease: None)
    turns: Any = clients._turns  # noqa: SLF001 - a planted bug is inside of what it harms

    def of_this_process(*given: Any) -> list[dict[str, str]]:
        return [{name: f"{id_}.{os.getpid()}" for name, id_ in t.items()} for t in turns(*given)]

    put(clients, "_turns", of_this_process)


def _purge_early() -> None:
    def run(self: Any, round_: Round) -> None:
        while not self._ended:
            batches = self._take(round_, 3600.0)
            if round_.halted.is_set():
                return
            for batch in batches:
                round_.settled.put(batch)
            early = len(batches)
            if batches or not self._ended:
                round_.check()
                self._publish(batches, round_)
            for joined in batches[early:]:
                round_.settled.put(joined)
            self.published += sum(len(batch.rows) for batch in batches)
        round_.settled.put(None)

    put(ExactlyOncePublisher, "run", run)


def _no_gap_watch() -> None:
    put(GapWatch, "see", lambda *_: None)
    put(GapWatch, "see_below", lambda *_: None)


PLANTS: dict[str, Callable[[], None]] = {
    "fence-off": _fence_off,
    "purge-early": _purge_early,
    "no-gap-watch": _no_gap_watch,
}
