"""Projects to run Dagster for: copies of the code location, each with databases of its own."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import yaml

from harvest_dagster.embedded import Servers
from tests.support.databases import new_database
from tests.support.paths import ROOT

FOLDERS = ("assets", "resources", "sensors")
_KAFKA_SECRET = "SHOP_KAFKA_PASSWORD"  # noqa: S105 - a variable's name
FILES = ("definitions.py", "workspace.yaml", "dagster.yaml")


@dataclass(frozen=True)
class Project:
    """A directory to start Dagster in, and the servers that its settings name."""

    folder: Path
    postgres: str
    servers: Servers
    more: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The home that `harvest dev dagster` uses."""
        return self.folder / ".harvest"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of whatever is started in it."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HARVEST_", "DAGSTER_"))
        }
        return {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HARVEST_POSTGRES": self.postgres,
            "HARVEST_KAFKA": self.servers.kafka,
            "HARVEST_HOME": str(self.home),
            **self.more,
        }


@contextmanager
def new_project(folder: Path, servers: Servers, template: str) -> Iterator[Project]:
    """Copy the code location; its databases go when the block ends."""
    name = f"dagster_{uuid.uuid4().hex}"
    copy_location(folder, name)
    with new_database(servers, template) as url:
        yield Project(folder, url, servers)
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def with_kafka_secret(project: Project, secret: str) -> Project:
    """Have the harvest's Kafka ask for a secret, as a code location gives one: by the environment.

    It takes no part, since a broker without SASL asks for no password, but goes wherever one goes.
    """
    path = project.folder / "resources" / "harvest.py"
    kafka = f'KafkaResource(settings={{"sasl.password": dg.EnvVar("{_KAFKA_SECRET}")}})'
    text = path.read_text()
    assert "KafkaResource()" in text
    text = text.replace("KafkaResource()", kafka)
    text = text.replace(
        "\nfrom harvest_dagster", "\nimport dagster as dg\n\nfrom harvest_dagster", 1
    )
    path.write_text(text)
    return replace(project, more={**project.more, _KAFKA_SECRET: secret})


@contextmanager
def beside(project: Project, folder: Path) -> Iterator[Project]:
    """Copy a project for a Dagster of its own, whose sensor stands for the same election."""
    name = f"dagster_{uuid.uuid4().hex}"
    copy_location(folder, name)
    shutil.copy(project.folder / "resources" / "harvest.py", folder / "resources")
    yield replace(project, folder=folder)
    with psycopg.connect(project.servers.postgres, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def copy_location(folder: Path, database: str) -> None:
    """Copy what people run in the root, and name Dagster's database."""
    folder.mkdir(parents=True, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    # All tests share one Kafka, where a harvest's name is that of the group that elects.
    harvest = folder / "resources" / "harvest.py"
    harvest.write_text(
        harvest.read_text().replace("NeliResource()", f'NeliResource(name="{database}")')
    )
    path = folder / "dagster.yaml"
    settings = yaml.safe_load(path.read_text())
    settings["storage"]["custom"]["config"]["database"] = database
    path.write_text(yaml.safe_dump(settings))
