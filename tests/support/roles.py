"""A role of PostgreSQL of a test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

_PASSWORD = "x"  # noqa: S105 - of roles made up for the test


@pytest.fixture
def role(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may log in, and nothing else."""
    name = f"role-{uuid.uuid4().hex}"
    connection.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{_PASSWORD}'")
    connection.commit()
    yield name
    connection.rollback()
    connection.execute(f'DROP OWNED BY "{name}"')
    connection.execute(f'DROP ROLE "{name}"')
    connection.commit()


def url_as(role: str, database: str) -> str:
    """Return the URL of a database with this role as its user."""
    url = sa.make_url(database).set(username=role, password=_PASSWORD)
    return url.render_as_string(hide_password=False)
