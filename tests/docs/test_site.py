"""The site can be built, its links lead somewhere, and it says what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from scripts.reference import DOCS, pages

ROOT = DOCS.parent
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def test_the_site_is_built_strictly(tmp_path: Path) -> None:
    """Every page is in the navigation, and every link and anchor within the site is there."""
    words = ["build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tutorial" / "index.html").exists()


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_into_the_docs(page: Path) -> None:
    """What stands outside of the site links to files that are there."""
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_generated_pages(page: Path) -> None:
    """What is made from the code is up to date: `make docs` writes it."""
    assert page.read_text() == pages()[page]


def test_every_table_has_its_place(connection: psycopg.Connection[Any]) -> None:
    """The reference has each table that a database with all migrations has."""
    text = (DOCS / "reference" / "tables.md").read_text()
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'harvest'")
    tables = [f"\n### harvest.{name}\n" for (name,) in rows]
    assert [table for table in tables if table not in text] == []
    assert tables
