"""Servers that ask for TLS, shared by all workers; places to harvest at, and harvests at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harvest_dagster.embedded import Servers
from tests.support.added_parts import with_parts
from tests.support.place import place
from tests.support.roles import roles
from tests.support.running import start_harvest, start_tour
from tests.support.secure import Secure, database_of, start
from tests.support.servers import SECURE_HOME

__all__ = ["place", "roles", "start_harvest", "start_tour", "with_parts"]


@pytest.fixture(scope="session")
def secure_servers() -> Servers:
    """PostgreSQL and Kafka that ask for TLS, running."""
    return start(SECURE_HOME)


@pytest.fixture
def secure(secure_servers: Servers) -> Iterator[Secure]:
    """The same, with a database of this test's own."""
    with database_of(secure_servers) as found:
        yield found
