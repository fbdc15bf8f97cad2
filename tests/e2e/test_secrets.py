"""A Dagster that runs shows its secrets to nobody, and listens to nobody from elsewhere."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import sqlalchemy as sa
import yaml
from psycopg.sql import SQL, Identifier

from tests.support.dagster_dev import DagsterDev

KAFKA_SETTING = "sasl.password"
CONFIG = {"ops": {"orders": {"config": {"count": 3, "customers": 1}}}}
PAGES = {
    "the deployment's configuration": "{ instance { info } }",
    "runs' configurations": """{ runsOrError(limit: 50) { ... on Runs { results {
        runId runConfigYaml tags { key value }
    } } } }""",
    "the location": """{ workspaceOrError { ... on Workspace { locationEntries {
        displayMetadata { key value }
        locationOrLoadError { ... on RepositoryLocation {
            environmentPath
            repositories {
                name
                allTopLevelResourceDetails { name configFields { name defaultValueAsJson }
                    configuredValues { key value } }
            }
        } }
    } } } }""",
}


def test_secrets_are_nowhere(dagster_ui: DagsterDev) -> None:
    """Neither PostgreSQL's nor Kafka's is on a page, in a table, file, log or command line."""
    ui, project = dagster_ui.ui, dagster_ui.project
    run = ui.launch_assets("orders", config=CONFIG)
    assert ui.wait_for_run(run) == "SUCCESS", ui.run_log(run)
    secrets = {str(sa.make_url(project.postgres).password), *project.more.values()}
    assert len(secrets) == 1 + len(project.more) > 1
    seen = {
        **{what: str(ui.ask(query)) for what, query in PAGES.items()},
        **dict(_tables(project.postgres, _database(project.folder))),
        **{
            str(file): file.read_bytes().decode(errors="replace") for file in _files(project.folder)
        },
        "what it said": dagster_ui.said(),
        "command lines": "\n".join(" ".join(each.cmdline()) for each in dagster_ui.processes()),
    }
    assert run in seen["runs' configurations"]
    assert run in seen["event_logs"]
    assert "outbox" in seen["the location"]
    assert "dagster" in seen["command lines"]
    assert KAFKA_SETTING in seen["the location"]
    found = [where for where, text in seen.items() if any(one in text for one in secrets)]
    assert found == []


def test_it_listens_on_loopback(dagster_ui: DagsterDev) -> None:
    """Neither the UI, nor a daemon, nor a code server can be reached from another machine."""
    addresses = {
        each.laddr.ip
        for process in dagster_ui.processes()
        for each in process.net_connections(kind="inet")
        if each.status == psutil.CONN_LISTEN
    }
    assert addresses
    assert all(ipaddress.ip_address(address).is_loopback for address in addresses), addresses


def _database(folder: Path) -> str:
    settings: Any = yaml.safe_load((folder / "dagster.yaml").read_text())
    return str(settings["storage"]["custom"]["config"]["database"])


def _tables(postgres: str, database: str) -> Iterator[tuple[str, str]]:
    """Read all that Dagster keeps."""
    url = sa.make_url(postgres).set(database=database).render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        for (name,) in connection.execute(query).fetchall():
            rows = connection.execute(SQL("SELECT * FROM {}").format(Identifier(name)))
            yield name, "\n".join(map(str, rows))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
