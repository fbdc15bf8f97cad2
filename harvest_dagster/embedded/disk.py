"""What the disk may refuse, said in one line."""

from __future__ import annotations

import errno
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEEDED = 1_000_000_000


def check_space(directory: Path) -> None:
    """Refuse to set up servers where they would soon fail."""
    free = shutil.disk_usage(directory).free
    if free < NEEDED:
        raise EmbeddedError(
            f"{directory} has {free / 1e9:.1f} GB left and {NEEDED / 1e9:.0f} GB is needed:"
            " free some space, or choose another disk"
        )


@contextmanager
def explained(home: Path) -> Iterator[None]:
    """Turn an error of the system's into one that says what to do next."""
    try:
        yield
    except OSError as error:
        place = error.filename or home
        if error.errno == errno.ENOSPC:
            raise EmbeddedError(f"{place}: the disk is full: free some space") from error
        raise EmbeddedError(
            f"{place}: {error.strerror or error}: see to it, or choose another home with --home"
        ) from error
