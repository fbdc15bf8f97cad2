"""The pages of the docs, and the examples in them."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted({*(ROOT / "docs").rglob("*.md")} - {TUTORIAL})]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
