from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.sql import SQL

from harvest_dagster.postgres.migrations import migrations
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import Statement, statements
from tests.support.paths import ROOT

FILES = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "harvest_dagster").rglob("*.sql")
    if path.parent.name != "migrations"
)

TEXT = """-- first: what it is for
SELECT 1
  -- a comment of its own
  FROM {table};

-- second_one: something else
SELECT 'it''s; not -- the end'
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Statement]:
    """The statements of a file of two."""
    package = tmp_path / "some_package_of_sql"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "some.sql").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    return statements("some_package_of_sql", "some.sql")


def test_names_and_purposes(loaded: dict[str, Statement]) -> None:
    """Each statement is found by its name, with what it is for."""
    assert {name: statement.purpose for name, statement in loaded.items()} == {
        "first": "what it is for",
        "second_one": "something else",
    }


def test_text_ends_at_the_next_heading(loaded: dict[str, Statement]) -> None:
    """A statement is all up to the next heading, without its semicolon."""
    assert loaded["first"].text == "SELECT 1\n  -- a comment of its own\n  FROM {table}"
    assert loaded["second_one"].text == "SELECT 'it''s; not -- the end'"


@pytest.mark.parametrize(
    ("table", "written"),
    [(TableName("a"), '"a"'), (TableName('b"', "a.b"), '"a.b"."b"""'), (SQL("x"), "x")],
)
def test_places(loaded: dict[str, Statement], table: TableName | SQL, written: str) -> None:
    """A place is filled with a quoted name, or with SQL that was made of one."""
    assert loaded["first"].sql(table=table).as_string(None).endswith(f"FROM {written}")


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_statement_is_found(file: Path) -> None:
    """Every heading of our own files makes a statement that is not empty, each name once."""
    found = statements(".".join(file.parent.parts), file.name)
    headings = [line for line in (ROOT / file).read_text().splitlines() if line[:3] == "-- "]
    assert len(found) == len(headings)
    assert all(statement.text for statement in found.values())


def test_migrations_are_numbered() -> None:
    """Each room's migrations are numbered from 1 without a gap, and come in that order."""
    for room in {migration.room for migration in migrations()}:
        versions = [each.version for each in migrations() if each.room == room]
        assert versions == list(range(1, len(versions) + 1)), room
