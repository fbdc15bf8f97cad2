"""Files and directories that only their owner may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_private(directory: Path) -> Path:
    """Make a directory, and its parents, of mode 0700."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 in one step, so that nobody ever reads half of it."""
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(text, encoding="utf-8")
    new.replace(path)
