"""What people are told to install is there."""

from __future__ import annotations

import re
import tomllib

from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
DOCKERFILE = (ROOT / "docs" / "deploy" / "Dockerfile").read_text()


def test_every_extra_is_told() -> None:
    """The README has a command for each that is not for contributors, and names the wheel."""
    extras = set(PROJECT["optional-dependencies"]) - {"dev"}
    assert set(re.findall(r"`pip install '\.\[(\w+)\]'` \|", README)) == extras
    assert f"harvest_dagster-{PROJECT['version']}-py3-none-any.whl" in README


def test_the_image_is_made_of_what_is_there() -> None:
    """All that it copies is in the repository, and what it installs is pinned."""
    lines = re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE)
    copied = [name for line in lines for name in line.split()]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    pinned = re.findall(r" -[bcr] /src/(\S+)", DOCKERFILE)
    assert {f"requirements/{name}" for name in pinned} <= set(copied)
