"""The jars of Apache Kafka: resolved once, checked, and shared by all homes of a user."""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import check_space, exclusive
from harvest_dagster.embedded.ivy import resolve
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = "kafka-4.3.0"


def have_jars(java: str, log: Path, say: Callable[[str], None]) -> Path:
    """Tell the folder of Kafka's jars, and download them when they are not there."""
    folder = _cache() / VERSION
    if not _is_whole(folder):
        with exclusive(_cache() / f"{VERSION}.lock", say):
            if not _is_whole(folder):
                _download(folder, java, log, say)
    return folder


def hashes() -> dict[str, str]:
    """Read the SHA-256 of each jar, by its name."""
    listed = files(__package__).joinpath(f"{VERSION}.sha256").read_text(encoding="utf-8")
    return {name: digest for digest, name in map(str.split, listed.splitlines())}


def _download(folder: Path, java: str, log: Path, say: Callable[[str], None]) -> None:
    check_space(folder.parent)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        resolve(java, part, log, lambda *counts: say(_progress(*counts)))
        _check(part / "jars")
        shutil.rmtree(folder, ignore_errors=True)
        (part / "jars").rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _progress(known: int, here: int) -> str:
    done = f"{here} of {len(hashes())} jars" if here else f"looking up its parts, {known} so far"
    return f"downloading Apache Kafka, once for all homes: {done}"


def _check(jars: Path) -> None:
    for name, wanted in hashes().items():
        jar = jars / name
        if not jar.exists() or hashlib.sha256(jar.read_bytes()).hexdigest() != wanted:
            raise EmbeddedError(
                f"the download of Kafka brought a wrong {name}: try again, and if it stays wrong"
                " ask whoever runs the repository that Java's downloads come from"
            )


def _is_whole(folder: Path) -> bool:
    return all((folder / name).exists() for name in hashes())


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "harvest_dagster"
