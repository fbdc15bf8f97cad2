"""The cells: one version of one thing each, all else being what is pinned."""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Callable
from typing import NamedTuple

from harvest_dagster.embedded import Servers
from scripts.matrix import ROOT, builds, cell_servers, pythons

_PINNED = str(ROOT / "requirements" / "dev.txt")
_BOOTSTRAP = str(ROOT / "requirements" / "bootstrap.txt")


def _of(room: str, *names: str) -> tuple[str, ...]:
    folder = f"tests/integration/{room}"
    return tuple(f"{folder}/test_{name}.py" for name in names) or (folder,)


_ON_PYTHON = (
    "tests/unit",
    *_of("postgres"),
    *_of("ledger"),
    *_of("harvest", "harvest", "fences", "delegate"),
)
_ON_POSTGRES = (
    *_of("postgres"),
    *_of("ledger"),
    *_of("outbox", "check", "privileges", "round_trip", "schema", "sql_function", "stash_psycopg"),
    *_of("outbox", "table_changes", "upgrade"),
    *_of("harvest", "harvest", "mark", "plans", "gap_watch", "late_commits", "fences"),
)
_ON_KAFKA = (
    "tests/unit/kafka",
    *_of("election"),
    *_of("harvest", "harvest", "fences", "recover", "rejected", "delegate", "topics"),
    *_of("harvest", "begun_anew", "reading", "testing"),
)
_WITH_DAGSTER = (
    "tests/unit/orchestration",
    "tests/integration/orchestration",
    "tests/integration/work",
)
_BOUND = re.compile(r"(dagster[a-z-]*)>=([0-9.]+)")


class Ready(NamedTuple):
    """What a cell's tests are run by: a Python, and servers if they are not the tests' own."""

    version: str
    python: str = sys.executable
    servers: Servers | None = None


class Cell(NamedTuple):
    """One version of one thing, how it is made ready, and what is tested on it."""

    thing: str
    version: str
    tests: tuple[str, ...]
    prepare: Callable[[], Ready]
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return its name, by which it is chosen."""
        return f"{self.thing}-{self.version}".lower()


def _python(version: str) -> Cell:
    def prepare() -> Ready:
        python = pythons.environment(f"python-{version}", pythons.find(version))
        pinned = ["-r", _PINNED, "-b", _BOOTSTRAP]
        pythons.install(python, "--require-hashes", *pinned)
        pythons.install(python, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
        return Ready(pythons.version_of(python), python)

    return Cell("Python", version, _ON_PYTHON, prepare)


def _postgres(version: str) -> Cell:
    def prepare() -> Ready:
        started = cell_servers.start(postgres=builds.postgres(version))
        return Ready(cell_servers.postgres_version(started), servers=started)

    return Cell("PostgreSQL", version.partition(".")[0], _ON_POSTGRES, prepare)


def _kafka(version: str) -> Cell:
    def prepare() -> Ready:
        return Ready(version, servers=cell_servers.start(kafka=builds.kafka(version)))

    return Cell("Kafka", version.rpartition(".")[0], _ON_KAFKA, prepare)


def _dagster(version: str, pins: Callable[[], list[str]]) -> Cell:
    def prepare() -> Ready:
        python = pythons.environment(f"dagster-{version}", sys.executable)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides:
            overrides.write("\n".join(pins()))
            overrides.flush()
            pythons.install(python, "--override", overrides.name, "-e", f"{ROOT}[dev]")
        return Ready(pythons.package(python, "dagster"), python)

    # An old Dagster uses what other libraries have deprecated since; a new one deprecates too.
    return Cell("Dagster", version, _WITH_DAGSTER, prepare, ("-W", "default"))


def lowest() -> list[str]:
    """Return the lowest version of each of Dagster's packages that `pyproject.toml` takes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [each for extra in project["optional-dependencies"].values() for each in extra]
    bounds = [bound for each in wanted if (bound := _BOUND.match(each))]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds]


CELLS = (
    *map(_python, ("3.11", "3.12", "3.13", "3.14")),
    *map(_postgres, ("14.24.0", "15.19.0", "16.15.0", "17.11.0")),
    *map(_kafka, ("3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.1")),
    _dagster("lowest", lowest),
    _dagster("newest", list),
)
