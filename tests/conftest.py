"""Fixtures that all tests share: one PostgreSQL and one Kafka, and for each test its own of each.

A test's database is a copy of a template in which the schema `harvest` and an outbox stand; its
topics have names that nobody else uses.
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

from harvest_dagster import embedded
from tests.support.command import harvest
from tests.support.databases import connection, database, stashed
from tests.support.servers import HOME, KEPT, SECURE_HOME, servers, template
from tests.support.topics import topic

__all__ = ["connection", "database", "harvest", "servers", "stashed", "template", "topic"]

# How long an example takes says nothing while other workers take the processor.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")

# A shell ignores Ctrl-C for what it runs in the background, and whatever that starts inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test reads the settings of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the servers when the last worker is done, and throw away what the tests left in them."""
    is_worker = hasattr(session.config, "workerinput")
    for home in (HOME, SECURE_HOME):
        if not is_worker and not KEPT and home.exists():
            embedded.reset(home, say=lambda _line: None)
