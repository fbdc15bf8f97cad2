"""Where Dagster keeps its runs: beside the harvest's own tables, or where `dagster.yaml` says."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import click
import dagster as dg
import psycopg
import pytest
from dagster import DagsterRunStatus
from dagster._config import process_config, resolve_to_config_type

from harvest_dagster.embedded import Servers
from harvest_dagster.orchestration.storage import HarvestStorage
from tests.support.databases import url_of


@pytest.fixture(params=["", "?host=nowhere#/ %"])
def missing(servers: Servers, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a database that is not there, and goes again; a name may be any text."""
    name = f"dagster_{uuid.uuid4().hex}{request.param}"
    yield name
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def stranger(servers: Servers) -> Iterator[str]:
    """The URL of a user who may create nothing."""
    name = f"stranger_{uuid.uuid4().hex}"
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
        yield urlsplit(servers.postgres)._replace(netloc=_as(servers, f"{name}:secret")).geturl()
        admin.execute(f"DROP ROLE {name}")


def storage(**config: Any) -> Any:
    """Make the storage as Dagster does, from what `dagster.yaml` says."""
    said = process_config(resolve_to_config_type(HarvestStorage.config_type()), config)
    assert said.value is not None, said.errors
    made: HarvestStorage = HarvestStorage.from_config_value(None, said.value)
    return made


def test_its_database_is_made_beside_the_harvests(
    database: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings name the server, `dagster.yaml` the database, and it need not be there."""
    monkeypatch.setenv("HARVEST_POSTGRES", database)
    for _ in range(2):
        made = storage(database=missing)
    run = dg.DagsterRun(job_name="some", status=DagsterRunStatus.STARTED)
    made.run_storage.add_run(run)
    with psycopg.connect(
        database.replace(urlsplit(database).path, f"/{quote(missing, safe='')}")
    ) as connection:
        row = connection.execute("SELECT run_id, status FROM runs").fetchone()
    assert row == (run.run_id, "STARTED")


def test_what_dagster_yaml_names_wins(
    servers: Servers, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL there is taken as it stands, also from the environment."""
    monkeypatch.setenv("HARVEST_POSTGRES", url_of(servers, "elsewhere"))
    monkeypatch.setenv("MINE", database.replace("postgresql:", "postgresql+psycopg2:"))
    assert storage(postgres_url={"env": "MINE"}).run_storage.get_runs() == []


def test_without_postgres_one_line_says_what_to_do() -> None:
    """No traceback of ours: a message of click's, which Dagster's command prints as it is."""
    with pytest.raises(
        click.ClickException, match=r"no PostgreSQL is configured: .*harvest dev up"
    ):
        storage()


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has the address, and not the password."""
    monkeypatch.setenv("HARVEST_POSTGRES", "postgresql://me:hush@127.0.0.1:9/db")
    with pytest.raises(click.ClickException, match=r"127\.0\.0\.1.*`harvest dev up`") as refused:
        storage()
    assert "hush" not in str(refused.value)


def test_a_user_who_may_not_create_is_told(
    missing: str, stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the database, and the ways out."""
    monkeypatch.setenv("HARVEST_POSTGRES", stranger)
    with pytest.raises(
        click.ClickException, match=f"{re.escape(missing)} is missing.*postgres_url"
    ):
        storage(database=missing)


def _as(servers: Servers, user: str) -> str:
    return f"{user}@{urlsplit(servers.postgres).netloc.rpartition('@')[2]}"


def test_a_page_after_a_restart(
    database: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web server keeps connections; the first page after they are cut off has its answer."""
    monkeypatch.setenv("HARVEST_POSTGRES", database)
    made = storage(database=missing)
    parts = [made.run_storage, made.event_log_storage, made.schedule_storage]
    for part in parts:
        part.optimize_for_webserver(statement_timeout=5000, pool_recycle=3600, max_overflow=1)
    asked = [
        made.run_storage.get_runs,
        made.event_log_storage.all_asset_keys,
        made.schedule_storage.all_instigator_state,
    ]
    assert [len(ask()) for ask in asked] == [0, 0, 0]
    with psycopg.connect(database, autocommit=True) as admin:
        cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"
        assert admin.execute(cut, (missing,)).fetchone() == (len(parts),)
    assert [len(ask()) for ask in asked] == [0, 0, 0]
