"""Licences are held to a list, and what is not on it is said with what to do."""

from __future__ import annotations

import pytest

from scripts.audit import PINNED, read_pins
from scripts.licences import LIST, Known, downloaded, findings, judge, read_list, told_by_package

KNOWN = Known(
    allowed=frozenset({"mit", "apache-2.0", "mozilla public license 2.0 (mpl 2.0)"}),
    excused={"psycopg": "LGPL-3.0-only"},
    told={},
)


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "apache-2.0",
        "MIT AND Apache-2.0",
        "GPL-3.0-only OR MIT",
        "Mozilla Public License 2.0 (MPL 2.0)",
    ],
)
def test_what_is_allowed(licence: str) -> None:
    """A licence of the list is, all of several are, and one of those that may be chosen."""
    assert judge("it", licence, KNOWN) == ""


@pytest.mark.parametrize(
    "licence",
    [
        "GPL-3.0-only",
        "AGPL-3.0-or-later",
        "LGPL-3.0-only",
        "MIT AND GPL-2.0-only",
        "GPL-2.0-only AND MIT OR GPL-3.0-only",
        "(MIT OR Apache-2.0) AND GPL-2.0-only",
        "MIT-like",
    ],
)
def test_what_is_refused(licence: str) -> None:
    """The line names the package and its licence, and says what to do."""
    assert judge("it", licence, KNOWN) == (
        f"it: its licence is {licence}: do without it; or if it may be used, write into"
        " licences.toml that it is allowed, or excused"
    )


def test_what_is_not_known() -> None:
    """A package that says none is found too."""
    assert judge("it", "", KNOWN).startswith("it: its licence is not known: look it up,")


def test_an_excuse_is_for_one_licence_of_one_package() -> None:
    """Another licence of the same package is refused, and the same of another."""
    assert judge("psycopg", "LGPL-3.0-only", KNOWN) == ""
    assert "psycopg: its licence is GPL-3.0-only" in judge("psycopg", "GPL-3.0-only", KNOWN)


def test_an_installed_package_says_its_licence() -> None:
    """By an expression, by classifiers, or by name; one that is not there says none."""
    assert told_by_package("psycopg") == "LGPL-3.0-only"
    assert told_by_package("certifi") == "Mozilla Public License 2.0 (MPL 2.0)"
    assert told_by_package("pyspark") == "Apache-2.0"
    assert told_by_package("there-is-no-such-package") == ""


def test_all_that_is_pinned_or_downloaded_may_be_used() -> None:
    """Nothing is found, and the list has no line that is for nothing."""
    names = {pin.name for pin in read_pins(PINNED.read_text())}
    assert findings(names) == []
    known = read_list(LIST.read_text())
    assert known.told.keys() | known.excused.keys() <= names | set(downloaded())
