"""The cells of `make matrix`, and the page of what they brought."""

from __future__ import annotations

from pathlib import Path

import pytest

from harvest_dagster.embedded.jars import folder_of, hashes
from scripts.matrix import __main__ as matrix
from scripts.matrix import builds
from scripts.matrix.cell_results import CellResult, page
from scripts.matrix.cells import CELLS, lowest
from tests.support.paths import ROOT

FIRST, SECOND, *OTHERS = CELLS


def test_each_cell_has_a_name_of_its_own_and_tests_that_are_there() -> None:
    """So each can be chosen, and none tests nothing."""
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert [path for cell in CELLS for path in cell.tests if not (ROOT / path).exists()] == []


def test_a_cell_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are there are named."""
    assert matrix.main(["kafka", "kafka-0.8"]) == 2
    assert "there is no cell kafka-0.8: choose from python-3.11," in capsys.readouterr().out


def test_results_are_counted(tmp_path: Path) -> None:
    """Errors are failures, and a test that was skipped has not passed."""
    told = tmp_path / "told.xml"
    told.write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'
    )
    assert matrix.counts(told) == (5, 3)


def test_every_download_has_its_sums() -> None:
    """What is run from a jar is checked; a build has a folder of its own in the cache."""
    made = {"kafka": builds.kafka, "postgres": builds.postgres, "python": builds.python}
    for path in builds.SUMS.glob("*.sha256"):
        kind, _, version = path.stem.partition("-")
        module = made[kind](version)
        assert any(version in name for name in hashes(module))
        assert folder_of(module).name == path.stem


def test_the_lowest_is_what_the_project_takes() -> None:
    """Every package of Dagster's that has a bound is pinned to it."""
    assert {pin.split("==")[0] for pin in lowest()} == {
        "dagster",
        "dagster-webserver",
        "dagster-postgres",
        "dagster-pyspark",
    }


def test_the_page_says_what_each_cell_brought() -> None:
    """One that passed, one that failed, and those that were never run."""
    brought = {
        FIRST.name: CellResult("3.11.9", 7, "", "2026-11-20", 5),
        SECOND.name: CellResult("3.12.1", 6, "1 tests failed, see log", "2026-11-20", 5),
    }
    rows = [line for line in page(brought) if line.startswith(f"| {FIRST.thing} ")]
    assert rows[:2] == [
        "| Python | 3.11 | 3.11.9 | 7 tests passed | 2026-11-20 |",
        "| Python | 3.12 | 3.12.1 | **fails**: 1 tests failed, see log | 2026-11-20 |",
    ]
    assert all(row.endswith("|  | not tested |  |") for row in rows[2:])
