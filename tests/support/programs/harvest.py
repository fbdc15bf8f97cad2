"""A harvest, or a tour, that prints what happens; what to do is JSON on its standard input."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from typing import Any
from uuid import UUID

from harvest_dagster.errors import FencedError
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.leader_events import Event
from harvest_dagster.harvest.tour import Tour
from harvest_dagster.ledger.lease import Lease

_lock = threading.Lock()


def say(kind: str, **more: object) -> None:
    """Print a line."""
    with _lock:
        sys.stdout.write(json.dumps({"kind": kind, **more}, default=str) + "\n")
        sys.stdout.flush()


def told(event: Event) -> None:
    """Print an event."""
    say(type(event).__name__, epoch=getattr(event, "epoch", None))


def harvest(config: HarvestConfig) -> None:
    """Harvest until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    own = Harvest(config)
    own.set_event_handler(told)
    own.start()
    say("started")
    while not stop.wait(0.1):
        own.wait(0)
    own.stop(20)
    say("stopped")


def tour(config: HarvestConfig, lease: dict[str, Any]) -> None:
    """Tour until killed, or fenced by what PostgreSQL and Kafka tell: no clock is looked at."""
    under = Lease(**{**lease, "leader_id": UUID(lease["leader_id"])})
    own = Tour(config, under, lambda: True, lambda new: say("refreshed", epoch=new.epoch))
    say("started")
    try:
        own.run()
    except FencedError as error:
        say("fenced", reason=str(error))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    job = json.load(sys.stdin)
    configured = HarvestConfig(**job["config"])
    if job["lease"]:
        tour(configured, job["lease"])
    else:
        harvest(configured)
