"""A counter in a database of the test's own, whose room is one line among the rooms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from harvest_dagster.postgres.migrations import migrate
from harvest_dagster.rooms import ROOMS
from tests.support.counter.room import Counter


@pytest.fixture
def counter(database: str) -> Iterator[Counter]:
    """Something that is led, and is no harvest."""
    ROOMS.append("tests.support.counter")
    with psycopg.connect(database) as connection:
        migrate(connection)
    yield Counter("count", database)
    ROOMS.remove("tests.support.counter")


@pytest.fixture
def count(counter: Counter) -> Callable[[], int]:
    """Read how far it has come."""

    def read() -> int:
        with psycopg.connect(counter.postgres_url) as connection:
            row = connection.execute("SELECT number FROM harvest.count").fetchone()
        return row[0] if row else 0

    return read
