"""A harvest whose password to PostgreSQL changes, as those do that a cloud gives out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from psycopg import sql

from tests.support.account import judge, read
from tests.support.place import Place
from tests.support.running import StartHarvest

_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"


@dataclass
class Role:
    """A role whose password changes, and the file that has the one that is good now."""

    place: Place
    file: Path
    name: str

    @property
    def url(self) -> str:
        """Where the role connects; the password is in the file alone."""
        own = sa.make_url(self.place.postgres)
        place = f"{own.host}:{own.port}/{own.database}"
        return f"postgresql://{self.name}@{place}?passfile={self.file}"

    def renew(self) -> None:
        """Let the old password open nothing more, and write the new one down."""
        password = f"db.example:5432/?Action=connect&Token={uuid.uuid4().hex}"  # as RDS writes it
        change = sql.SQL("ALTER ROLE {} PASSWORD {}")
        self.place.rows(change.format(sql.Identifier(self.name), sql.Literal(password)))
        self.file.touch(mode=0o600)
        escaped = password.replace(":", r"\:")
        self.file.write_text(f"*:*:*:{self.name}:{escaped}\n")

    def cut_off(self) -> None:
        """End all its sessions, as a failover does."""
        assert self.place.rows(_SESSIONS, (self.name,))


@pytest.fixture
def role(place: Place, tmp_path: Path) -> Iterator[Role]:
    """A role that may harvest in this test's database."""
    name = f"test_{uuid.uuid4().hex}"
    place.rows(sql.SQL("CREATE ROLE {} LOGIN SUPERUSER").format(sql.Identifier(name)))
    yield Role(place, tmp_path / "passwords", name)
    place.rows(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_the_file_is_read_again(place: Place, role: Role, start_harvest: StartHarvest) -> None:
    """Sessions outlive their password, and a new one is made by what the file has by then."""
    role.renew()
    place.put(100)
    running = start_harvest(place.config(postgres=role.url))
    place.drained()
    role.renew()
    place.put(100)
    place.drained()
    role.cut_off()
    place.put(100)
    place.drained()
    running.harvest.stop(20)
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")
