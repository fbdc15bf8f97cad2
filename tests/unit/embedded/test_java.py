"""Which Java is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded.java import find_java, major_version
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\njava version "21" 2023-09-19 LTS', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("command not found", 0),
    ],
)
def test_the_major_version_is_read(shown: str, version: int) -> None:
    """Old and new ways of numbering are understood."""
    assert major_version(shown) == version


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Java of JAVA_HOME is taken even when another is on the PATH."""
    java = fake_java(tmp_path, "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names the version and what is needed."""
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedError, match=r"^Kafka needs Java 17 or newer, and .* is 11: .*$"):
        find_java()


def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says to install one."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EmbeddedError, match=r"install it, or set JAVA_HOME$"):
        find_java()


def fake_java(home: Path, version: str) -> str:
    """Write a program that shows this version as Java does."""
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return str(java)
