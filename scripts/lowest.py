"""Test what is for Dagster on the lowest versions of it that `pyproject.toml` takes.

    python -m scripts.lowest

They go into a virtual environment of their own, in `.harvest/lowest`, the newest of all others.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

_HOME = Path(".harvest/lowest")
_TESTS = ("tests/unit/orchestration", "tests/integration/orchestration", "tests/integration/work")
_BOUND = re.compile(r"(dagster[a-z-]*)>=([0-9.]+)")


def main() -> int:
    """Install them, and run the tests; return pytest's code."""
    uv, python = str(Path(sys.executable).with_name("uv")), str(_HOME / "bin" / "python")
    subprocess.run([uv, "venv", "--quiet", "--clear", _HOME], check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lowest:
        lowest.write("\n".join(_lowest()))
        lowest.flush()
        given = ["--python", python, "--override", lowest.name, "-e", ".[dev]"]
        subprocess.run([uv, "pip", "install", "--quiet", *given], check=True)
    # An old Dagster uses what other libraries have deprecated since.
    pytest = [python, "-m", "pytest", "-q", "-n", "2", "-W", "default", *_TESTS]
    return subprocess.run(pytest, check=False).returncode


def _lowest() -> list[str]:
    """Return the lowest version of each of Dagster's packages."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    wanted = [each for extra in project["optional-dependencies"].values() for each in extra]
    bounds = [bound for each in wanted if (bound := _BOUND.match(each))]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds]


if __name__ == "__main__":
    sys.exit(main())
