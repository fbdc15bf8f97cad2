"""The sums of all that is downloaded, as they were when this was released: the files `*.sha256`."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDER = files(__package__)
"""Where these files are."""


def read_sums(name: str, folder: Traversable = FOLDER) -> dict[str, str]:
    """Return the SHA-256 of each file of a download, by the file's name."""
    listed = folder.joinpath(f"{name}.sha256").read_text(encoding="utf-8")
    return {file: digest for digest, file in map(str.split, listed.splitlines())}
