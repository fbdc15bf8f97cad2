"""No SQL of a room names a table of a room above it, and each grants what is its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harvest_dagster.outbox.privileges import GRANTS
from harvest_dagster.postgres.privileges import room_grants
from harvest_dagster.rooms import ROOMS
from tests.support.paths import ROOT

LIBRARY = ROOT / "harvest_dagster"
TABLES = {
    "ledger": {"lease", "event", "identity", "written", "candidate"},
    "outbox": {"claim", "parked", "producer", "retained"},
    "work": {"tour"},
    "harvest": set[str](),
    "reader": {"reader_position", "reader_producer"},
    "spark": {"staged"},
}
"""Whose the tables of the schema `harvest` are; that of migrations is below all of them."""
FIRST_LINE = LIBRARY / "postgres" / "migrations"
"""Made the tables of all rooms, before rooms had lines of their own."""
FILES = [file for file in sorted(LIBRARY.rglob("*.sql")) if FIRST_LINE not in file.parents]
NAMED = re.compile(r"(?<!')\bharvest\.([a-z_]+)\b(?!\s*\()")
COMMENT = re.compile(r"--.*")
BELOW = ["postgres", "kafka"]


def order() -> list[str]:
    """Return the rooms from the bottom up."""
    return [package.rpartition(".")[2] for package in ROOMS]


def test_the_tables_are_known() -> None:
    """Each room of the registry has its tables here, and each table that is made has its room."""
    assert list(TABLES) == order()
    made = {
        name
        for file in FIRST_LINE.glob("*.sql")
        for name in re.findall(r"CREATE TABLE harvest\.(\w+)", file.read_text())
    }
    for room in order():
        for file in (LIBRARY / room).glob("migrations/*.sql"):
            made |= set(re.findall(r"CREATE TABLE harvest\.(\w+)", file.read_text()))
    assert made == set().union(*TABLES.values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(LIBRARY)))
def test_a_file_names_what_is_below(file: Path) -> None:
    """A file names tables of its own room, or of one below."""
    named = set(NAMED.findall(COMMENT.sub("", file.read_text())))
    room = file.relative_to(LIBRARY).parts[0]
    if room in BELOW:
        assert named <= {"migration"}
    elif room in order():
        known = [TABLES[each] for each in order()[: order().index(room) + 1]]
        assert named <= set().union(*known) | {"migration"}


@pytest.mark.parametrize("package", ["harvest_dagster.postgres", *ROOMS])
def test_a_room_grants_what_is_its_own(package: str) -> None:
    """A room's `grants.toml` names roles that there are, and each of its own tables, no other."""
    grants = room_grants(package)
    tables = {g.on for given in grants.values() for g in given if not g.on.startswith("SCHEMA ")}
    own = TABLES.get(package.rpartition(".")[2], {"migration"})
    assert grants.keys() <= GRANTS.keys()
    assert tables == {f"harvest.{table}" for table in own}


def test_rooms_are_looked_at_without_their_extras() -> None:
    """Migrations, grants and descriptions are read without importing Spark or Dagster."""
    program = (
        "import sys; from harvest_dagster.postgres.migrations import migrations; migrations();"
        "from harvest_dagster.postgres.privileges import own_grants; own_grants('spark');"
        "from harvest_dagster.work.room import rooms; rooms();"
        "sys.exit(bool({'pyspark', 'dagster'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
