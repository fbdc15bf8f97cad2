"""What the page of the benchmarks says of a figure."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from benchmarks import page
from benchmarks.report import Median, Result, as_row


def part(result: Result, machine: str = "2 cores") -> dict[str, Any]:
    """Make a part of one figure."""
    return {
        "results": [as_row(result)],
        "settings": "",
        "on": "2026-11-19",
        "took seconds": 60,
        "machine": {"machine": machine},
    }


def shown(result: Result) -> str:
    """Write the page of one figure, and take its row."""
    text = page.text({"stash": part(result)})
    (row,) = (line for line in text.splitlines() if "| it |" in line)
    return row


@pytest.mark.parametrize(
    "missed",
    [
        Result("it", 1.0, "/s", "other", 0.74, ">= 0.75"),
        Result("it", 250.0, "MB", target="< 250"),
        Result("it", 2.0, "%", target="< 2 %"),
        Result("it", 1, "", target="0"),
        Result("it", math.nan, "us", target="< 6000"),
        Result("it", 1.0, "", target="as good as can be"),
    ],
)
def test_what_misses_its_target_is_bold(missed: Result) -> None:
    """So is what was not measured, and what nobody can judge."""
    assert "**" in shown(missed)


@pytest.mark.parametrize(
    "met",
    [
        Result("it", 1.0, "/s", "other", 0.75, ">= 0.75"),
        Result("it", 249.0, "MB", target="< 250"),
        Result("it", 0, "", target="0"),
        Result("it", 1.0, ""),
    ],
)
def test_what_meets_its_target_is_not_bold(met: Result) -> None:
    """The exact bound of `at least` meets it."""
    assert "**" not in shown(met)


@pytest.mark.parametrize(("ratio", "said"), [(0.89, "not reached"), (0.9, "reached")])
def test_a_moonshot_is_told_and_never_bold(ratio: float, said: str) -> None:
    """It is no target."""
    row = shown(Result("it", 1.0, "/s", "other", ratio, ">= 0.75", 0.9))
    assert f"| >= 0.75; moonshot 0.9: {said} |" in row
    assert "**" not in row


def test_each_rounds_figure_is_kept() -> None:
    """The page tells how many runs there were, and the raw figures have them."""
    result = Result("it", Median.of([3.0, 1.0, 2.0]), "s")
    assert shown(result).endswith("| 2 s | 3 |")
    assert json.loads(json.dumps(as_row(result)))["samples"] == [3.0, 1.0, 2.0]


def test_what_was_measured_elsewhere_says_so() -> None:
    """The machine at the top of the page is that of the other parts."""
    it = Result("it", 1.0, "/s")
    text = page.text({"stash": part(it), "tour": part(it), "memory": part(it, "8 cores")})
    assert [line for line in text.splitlines() if "another machine" in line] == [
        "Measured on 2026-11-19 with `python -m benchmarks.memory `, on another machine, 8 cores."
    ]
