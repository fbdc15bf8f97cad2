"""Every target of the Makefile says what it does, and people find it."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_every_target_has_its_help() -> None:
    """`make` shows each one, and make takes none for a file."""
    assert set(re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE)) == TARGETS
    (phony,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.split()) == TARGETS


def test_contributors_are_told_of_each() -> None:
    """The table of daily commands has all that `make help` shows, and no other."""
    told = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert told == TARGETS - {"help"}
