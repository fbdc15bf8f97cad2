"""Where downloads are kept: each has its name only once it is whole, and all homes share it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import check_space, exclusive

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[[str], None]


def place(name: str) -> Path:
    """Return the folder of the download of this name."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "harvest_dagster" / name


def fill(
    folder: Path, is_whole: Callable[[], bool], fetch: Callable[[Path], Path], say: Say
) -> None:
    """Fill the folder if it is not whole: `fetch` works in another one, and returns the result."""
    if is_whole():
        return
    with exclusive(folder.with_name(f"{folder.name}.lock"), say):
        if not is_whole():
            check_space(folder.parent)
            _replace(folder, fetch)


def _replace(folder: Path, fetch: Callable[[Path], Path]) -> None:
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        fetched = fetch(part)
        shutil.rmtree(folder, ignore_errors=True)
        fetched.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
