"""A home's folder: its files are private, one command at a time works in it, its disk has room."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NEEDED = 1_000_000_000


def make_private(directory: Path) -> Path:
    """Make a directory, and its parents, that only their owner may read, and return it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step, so that nobody reads half of it."""
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@contextmanager
def exclusive(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path`; say so if another process holds it, and wait for that."""
    make_private(path.parent)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"waiting for another `harvest dev` that works in {path.parent}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def check_space(directory: Path, needed: int = NEEDED) -> None:
    """Raise an error if the disk is so full that servers on it would soon fail."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise EmbeddedError(
            f"{directory} has {free / 1e9:.1f} GB left and {needed / 1e9:,.0f} GB is needed:"
            " free some space, or choose another disk"
        )


@contextmanager
def explained(home: Path) -> Iterator[None]:
    """Turn an error of the operating system into one that says what to do next."""
    try:
        yield
    except OSError as error:
        place = error.filename or home
        if error.errno == errno.ENOSPC:
            raise EmbeddedError(f"{place}: the disk is full: free some space") from error
        raise EmbeddedError(
            f"{place}: {error.strerror or error}: see to it, or choose another home with --home"
        ) from error
