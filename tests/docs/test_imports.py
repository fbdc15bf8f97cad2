"""The docs, and the code location that users copy, import nothing but the public API."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DOORS = ("", ".harvest", ".reader", ".spark", ".orchestration", ".testing")
"""Of the package; a room that users import from has one."""
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = [
    ROOT / "definitions.py",
    *(path for room in ("assets", "resources", "sensors") for path in (ROOT / room).glob("*.py")),
    *(ROOT / "docs" / "deploy").glob("*.py"),
]


def imported(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that a program imports from, each with a name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harvest_dagster"):
            yield from ((node.module or "", name.name) for name in node.names)


def is_public(module: str, name: str) -> bool:
    """Return whether a module is a door, and has the name."""
    is_door = module.removeprefix("harvest_dagster") in DOORS
    return is_door and name in import_module(module).__all__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    """Each snippet of a page imports public names."""
    found = [pair for snippet in SNIPPET.findall(page.read_text()) for pair in imported(snippet)]
    assert [pair for pair in found if not is_public(*pair)] == []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_programs(program: Path) -> None:
    """So does each file that users copy."""
    assert [pair for pair in imported(program.read_text()) if not is_public(*pair)] == []


def test_every_error_can_be_imported() -> None:
    """All that is raised on purpose can be caught by its name from the root."""
    errors = import_module("harvest_dagster.errors")
    defined = {name for name in vars(errors) if name.endswith("Error")}
    assert defined <= set(import_module("harvest_dagster").__all__)
