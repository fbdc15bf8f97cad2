"""A candidate that prints what happens, and each time tries a write under its epoch."""

from __future__ import annotations

import json
import sys
import time

import psycopg

from harvest_dagster.election.candidate import Candidate
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.ledger.lease import Lease

FENCED_WRITE = """
    INSERT INTO harvest.event (name, shard, kind)
    SELECT name, shard, 'written' FROM harvest.lease
     WHERE name = %s AND shard = %s AND epoch = %s FOR KEY SHARE
"""


class Prints:
    """A listener that prints."""

    def __init__(self, postgres_url: str) -> None:
        self._url = postgres_url

    def acquired(self, lease: Lease) -> None:
        """Print."""
        self._say("acquired", lease)

    def revoked(self, lease: Lease) -> None:
        """Print."""
        self._say("revoked", lease)

    def fenced(self, lease: Lease) -> None:
        """Print."""
        self._say("fenced", lease)

    def _say(self, kind: str, lease: Lease) -> None:
        with psycopg.connect(self._url) as connection:
            values = (lease.name, lease.shard, lease.epoch)
            rows = connection.execute(FENCED_WRITE, values).rowcount
        line = {"kind": kind, "epoch": lease.epoch, "rows": rows}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    settings = CandidateSettings(**json.loads(sys.argv[1]))
    candidate = Candidate(settings, Prints(settings.postgres_url))
    candidate.start()
    while candidate.failure is None:
        time.sleep(0.1)
