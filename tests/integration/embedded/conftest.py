"""Homes of their own, gone with all their processes when the test ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from harvest_dagster import embedded
from tests.support.added_parts import bucket, mariadb, with_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["bucket", "mariadb", "with_parts"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Give an empty home."""
    yield tmp_path / "home"
    embedded.reset(tmp_path / "home")


@pytest.fixture
def processes() -> Callable[[Path], list[str]]:
    """Find processes by any mention of a home, unlike the code under test does."""

    def find(home: Path) -> list[str]:
        lines = (" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))
        return [line for line in lines if str(home) in line]

    return find
