"""The tables and triggers of the bench's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from tests.torture import lanes

_OVERLAP = Path(__file__).with_name("overlap.sql")


def create(connection: psycopg.Connection[Any], writers: range) -> None:
    """Create them beside an outbox, with a lane for every topic and key."""
    connection.execute(Path(__file__).with_suffix(".sql").read_bytes())
    connection.cursor().executemany(
        "INSERT INTO torture.lane (topic, key) VALUES (%s, %s)", lanes.every(writers)
    )


def overlap(connection: psycopg.Connection[Any]) -> float:
    """Tell for how many seconds two leaders wrote at once, by the history."""
    ((seconds,),) = connection.execute(_OVERLAP.read_bytes()).fetchall()
    return float(seconds)
