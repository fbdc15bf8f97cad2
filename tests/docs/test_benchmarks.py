"""The page of the benchmarks says what was measured, and no more."""

from __future__ import annotations

import json

from benchmarks import page


def test_the_page_is_of_the_figures_beside_it() -> None:
    """Nobody wrote a figure by hand."""
    found = json.loads((page.DOCS / "benchmarks.json").read_text())
    assert (page.DOCS / "benchmarks.md").read_text() == page.text(found)
    for name in found:
        drawn = (page.DOCS / page.PLOTS / f"{name}.svg").read_text()
        assert drawn == page.plot(name, found[name]["results"])
