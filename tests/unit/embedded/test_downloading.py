"""A program that downloads, and how long it may stand still."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import downloading
from harvest_dagster.embedded.downloading import Pace

if TYPE_CHECKING:
    from pathlib import Path

ENDS = "import sys; print('what it says'); sys.exit({})"
HANGS = "import signal; signal.pause()"


@pytest.mark.parametrize(("code", "well"), [(0, True), (1, False)])
def test_how_it_ends_is_returned(tmp_path: Path, code: int, *, well: bool) -> None:
    """What it said is in the log."""
    log, told = tmp_path / "log", list[str]()
    command = [sys.executable, "-c", ENDS.format(code)]
    assert downloading.run(command, log, lambda: 0, lambda: told.append("told")) is well
    assert log.read_text() == "what it says\n"
    assert told


def test_it_ends_when_nothing_comes(tmp_path: Path) -> None:
    """It may take as long as it likes while something comes."""
    coming = iter(range(1, 21))
    told: list[int] = []

    def came() -> int:
        return next(coming, 20)

    command, pace = [sys.executable, "-c", HANGS], Pace(look=0.05, stall=0.2)
    log = tmp_path / "log"
    assert not downloading.run(command, log, came, lambda: told.append(1), pace=pace)
    assert len(told) > 20


def test_the_size_is_that_of_files_by_these_names(tmp_path: Path) -> None:
    """Wherever they are below the folder."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.jar.part").write_bytes(b"123")
    (tmp_path / "b.jar").write_bytes(b"45")
    (tmp_path / "c.xml").write_bytes(b"6")
    assert downloading.size(tmp_path, "*.jar*") == 5
    assert downloading.size(tmp_path / "missing", "*") == 0
