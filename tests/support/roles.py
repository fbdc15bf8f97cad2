"""Roles of PostgreSQL: one that may nothing, and one of each kind, by the command that grants."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster.outbox.privileges import GRANTS
from tests.support.command import Harvest

PASSWORD = "a-password-of-a-role"  # noqa: S105 - of roles made up for the test
Roles = dict[str, str]


@pytest.fixture
def role(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may log in, and nothing else."""
    name = f"role-{uuid.uuid4().hex}"
    connection.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{PASSWORD}'")
    connection.commit()
    yield name
    connection.rollback()
    connection.execute(f'DROP OWNED BY "{name}"')
    connection.execute(f'DROP ROLE "{name}"')
    connection.commit()


def url_as(role: str, database: str) -> str:
    """Return the URL of a database with this role as its user."""
    url = sa.make_url(database).set(username=role, password=PASSWORD)
    return url.render_as_string(hide_password=False)


@pytest.fixture
def roles(connection: psycopg.Connection[Any], harvest: Harvest, database: str) -> Iterator[Roles]:
    """A role of each kind, by the command that grants; tell the URL of each."""
    names = {who: f"{who}-{uuid.uuid4().hex[:12]}" for who in (*GRANTS, "stranger")}
    for who, name in names.items():
        connection.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{PASSWORD}'")
        connection.commit()
        if who in GRANTS:
            granted = harvest("outbox", "grant", name, "--as", who)
            assert granted.returncode == 0, granted.stderr
    yield {who: url_as(name, database) for who, name in names.items()}
    connection.rollback()
    for name in names.values():
        connection.execute(f'DROP OWNED BY "{name}"')
        connection.execute(f'DROP ROLE "{name}"')
    connection.commit()
