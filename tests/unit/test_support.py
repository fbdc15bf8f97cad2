"""What tests share stands in `tests/support`, so that each test module can be read alone."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.paths import ROOT

MODULES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text())
    for path in (ROOT / "tests").rglob("*.py")
}
CONFTESTS = {name: tree for name, tree in MODULES.items() if Path(name).name == "conftest.py"}
SHARED = ("tests.support.", "tests.torture")
"""The second is a program of its own, that some tests are about."""


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a module imports anywhere, relative ones with their dots."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found |= {f"{base}.{name.name}" for name in node.names}
    return found


def is_private_to_tests(module: str) -> bool:
    """Return whether a module is one of the tests' own, which no other may import."""
    is_of_tests = module.split(".", maxsplit=1)[0] in {"", "tests", "conftest"}
    return is_of_tests and not module.startswith(SHARED)


def is_for_pytest(node: ast.stmt) -> bool:
    """Return whether a definition is a fixture or a hook of pytest."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    marks = {ast.unparse(mark).split("(")[0] for mark in node.decorator_list}
    return "pytest.fixture" in marks or node.name.startswith("pytest_")


def test_no_module_imports_a_test() -> None:
    """Nothing comes from a test module or a conftest."""
    wrong = {name: {*filter(is_private_to_tests, imported(tree))} for name, tree in MODULES.items()}
    assert {name: modules for name, modules in wrong.items() if modules} == {}


def test_conftests_have_fixtures_alone() -> None:
    """A conftest defines or re-exports fixtures and hooks; helpers and types stand elsewhere."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    defined = [
        (name, node)
        for name, tree in CONFTESTS.items()
        for node in tree.body
        if isinstance(node, kinds)
    ]
    assert defined
    assert [(name, node.name) for name, node in defined if not is_for_pytest(node)] == []
