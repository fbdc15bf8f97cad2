"""Pythons: find one of a version, and make a virtual environment of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from harvest_dagster.embedded.jars import folder_of, have_jars, have_unpacked, unpacked
from harvest_dagster.embedded.java import find_java
from scripts.matrix import FOLDER, builds

_DOWNLOADED = {"3.14": "3.14.3-1.5.13"}
"""Those that are downloaded where they are not installed."""
_INSIDE = Path("org/bytedeco/cpython/linux-x86_64/bin")


def find(version: str) -> str:
    """Return the program of a Python: one that is installed, or that was downloaded."""
    for program in _installed(version):
        if subprocess.run([program, "-V"], capture_output=True, check=False).returncode == 0:
            return program
    if version in _DOWNLOADED:
        return _downloaded(version)
    raise LookupError(f"there is no python{version}, on the PATH or by pyenv: install it")


def environment(name: str, python: str) -> str:
    """Make an empty virtual environment, and return its Python."""
    folder = FOLDER / name
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    return str(folder / "bin" / "python")


def install(python: str, *words: str) -> None:
    """Install packages by the uv of this environment."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *words], check=True)


def version_of(python: str) -> str:
    """Return the whole version of a Python."""
    said = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    return said.stdout.split()[1]


def package(python: str, name: str) -> str:
    """Return the version of a package that an environment has."""
    program = f"from importlib.metadata import version; print(version({name!r}))"
    said = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def _installed(version: str) -> Iterator[str]:
    if found := shutil.which(f"python{version}"):
        yield found
    for folder in Path.home().glob(f".pyenv/versions/{version}.*"):
        yield str(folder / "bin" / f"python{version}")


def _downloaded(version: str) -> str:
    build = builds.python(_DOWNLOADED[version])
    jars = have_jars(build, find_java(), FOLDER / f"download-{build.name}.log", print)
    have_unpacked(jars, _unpack, print)
    return str(unpacked(folder_of(build)) / _INSIDE / f"python{version}")


def _unpack(jar: ZipFile, into: Path) -> None:
    jar.extractall(into)
    for program in (into / _INSIDE).iterdir():
        program.chmod(0o755)
