"""Jars: downloaded once, checked against known sums, and shared by all homes of a user."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import check_space, exclusive
from harvest_dagster.embedded.ivy import resolve
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from harvest_dagster.embedded.ivy import Module

    Say = Callable[[str], None]


def have_jars(module: Module, java: str, log: Path, say: Say) -> Path:
    """Return the folder of a module's jars, and download them first if they are not there."""
    folder = folder_of(module)
    if not _is_whole(folder, module):
        with exclusive(folder.with_name(f"{folder.name}.lock"), say):
            if not _is_whole(folder, module):
                _download(module, folder, java, log, say)
    return folder


def folder_of(module: Module) -> Path:
    """Return where a module's jars are once they are downloaded."""
    home = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(home) if home else Path.home() / ".cache") / "harvest_dagster"
    return cache / "-".join(filter(None, (module.name, module.machine)))


def hashes(module: Module) -> dict[str, str]:
    """Read the SHA-256 of each jar, by its name."""
    listed = module.folder.joinpath(f"{module.name}.sha256").read_text(encoding="utf-8")
    pairs = map(str.split, listed.splitlines())
    return {name: digest for digest, name in pairs if module.machine in name}


def _download(module: Module, folder: Path, java: str, log: Path, say: Say) -> None:
    check_space(folder.parent)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        resolve(java, module, part, log, lambda *counts: say(_progress(module, *counts)))
        _check(part / "jars", module)
        shutil.rmtree(folder, ignore_errors=True)
        (part / "jars").rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _progress(module: Module, known: int, here: int) -> str:
    wanted = len(hashes(module))
    done = f"{here} of {wanted} jars" if here else f"looking up its parts, {known} so far"
    return f"downloading {module.title}, once for all homes: {done}"


def _check(jars: Path, module: Module) -> None:
    for name, wanted in hashes(module).items():
        jar = jars / name
        if not jar.exists() or hashlib.sha256(jar.read_bytes()).hexdigest() != wanted:
            raise EmbeddedError(
                f"the download of {module.title} brought a wrong {name}: try again, and if it stays"
                " wrong ask whoever runs the repository that Java's downloads come from"
            )


def _is_whole(folder: Path, module: Module) -> bool:
    return all((folder / name).exists() for name in hashes(module))
