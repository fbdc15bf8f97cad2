"""A reading that writes down what it reads, until it is killed; what to do is JSON on stdin."""

from __future__ import annotations

import json
import sys
from uuid import UUID

from harvest_dagster.ledger.lease import Lease
from harvest_dagster.reader import PostgresStore, ReaderConfig
from harvest_dagster.reader.reading import Reading
from tests.support.reading import insert

if __name__ == "__main__":
    job = json.load(sys.stdin)
    lease = Lease(**{**job["lease"], "leader_id": UUID(job["lease"]["leader_id"])})
    config = ReaderConfig(**job["config"])
    Reading(config, PostgresStore(job["store"]), insert, lease, lambda: True).run()
