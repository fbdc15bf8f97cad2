"""One `harvest dev` at a time: locks between processes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from harvest_dagster.embedded.files import make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def exclusive(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file `path`; say so when another process has to be waited for."""
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
