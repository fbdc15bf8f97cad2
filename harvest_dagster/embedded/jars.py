"""Jars: downloaded once, checked against known sums, and shared by all homes of a user."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from typing import TYPE_CHECKING

from harvest_dagster.embedded import download_cache
from harvest_dagster.embedded.home_folder import exclusive
from harvest_dagster.embedded.ivy import resolve
from harvest_dagster.embedded.known_sums import read_sums
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harvest_dagster.embedded.ivy import Module

    Say = Callable[[str], None]


def have_jars(module: Module, java: str, log: Path, say: Say) -> Path:
    """Return the folder of a module's jars, and download them first if they are not there."""
    folder = folder_of(module)

    def fetch(part: Path) -> Path:
        resolve(java, module, part, log, lambda *counts: say(_progress(module, *counts)))
        _check(part / "jars", module)
        return part / "jars"

    download_cache.fill(folder, lambda: _is_whole(folder, module), fetch, say)
    return folder


def have_unpacked(jars: Path, unpack: Callable[[zipfile.ZipFile, Path], None], say: Say) -> None:
    """Unpack the one jar of a folder, as `unpack` does that, if it was not unpacked before."""
    with exclusive(jars / "lock", say):
        if not unpacked(jars).is_dir():
            (jar,) = jars.glob("*.jar")
            part = jars / "programs.part"
            shutil.rmtree(part, ignore_errors=True)
            with zipfile.ZipFile(jar) as packed:
                unpack(packed, part)
            part.rename(unpacked(jars))


def unpacked(jars: Path) -> Path:
    """Return where a jar's content is once it is unpacked."""
    return jars / "programs"


def folder_of(module: Module) -> Path:
    """Return where a module's jars are once they are downloaded."""
    return download_cache.place("-".join(filter(None, (module.name, module.machine))))


def hashes(module: Module) -> dict[str, str]:
    """Read the SHA-256 of each jar, by its name."""
    known = read_sums(module.name, module.folder)
    return {name: digest for name, digest in known.items() if module.machine in name}


def _progress(module: Module, known: int, here: int, size: int) -> str:
    wanted = len(hashes(module))
    done = f"{here} of {wanted} jars, {size / 1e6:.0f} MB"
    if not size:
        done = f"looking up its parts, {known} so far"
    return f"downloading {module.title}, once for all homes: {done}"


def _check(jars: Path, module: Module) -> None:
    for name, wanted in hashes(module).items():
        jar = jars / name
        if not jar.exists() or _sum(jar) != wanted:
            raise EmbeddedError(
                f"the download of {module.title} brought a wrong {name}: try again, and if it stays"
                " wrong ask whoever runs the repository that Java's downloads come from"
            )


def _sum(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(folder: Path, module: Module) -> bool:
    return all((folder / name).exists() for name in hashes(module))
