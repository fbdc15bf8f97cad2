"""Hold the licences of what is installed and downloaded to a list: `licences.toml`.

A package's own metadata says its licence; what the metadata can't say stands in the list, as does
the licence of each jar, program and wheel that `harvest dev` or `make matrix` downloads.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_suffix(".toml")
SUMS = (_ROOT / "harvest_dagster" / "embedded", _ROOT / "scripts" / "matrix" / "sums")
_CLASSIFIER = "License :: "
_LONGEST = 60
"""Packages have put the whole text where its name belongs."""
_VERSION = re.compile(r"-\d+\.[^/]*\.(jar|whl)$")


class Known(NamedTuple):
    """The list: what anything may have, what one thing alone may have, and what is told by hand."""

    allowed: frozenset[str]
    excused: dict[str, str]
    told: dict[str, str]


def read_list(text: str) -> Known:
    """Read the list."""
    listed: dict[str, Any] = tomllib.loads(text)
    told = {name: licence for licence, names in listed["told"].items() for name in names}
    return Known(frozenset(map(str.lower, listed["allowed"])), listed["excused"], told)


def findings(names: Iterable[str]) -> list[str]:
    """Return what is wrong with the licences of these packages, and of all that is downloaded."""
    known = read_list(LIST.read_text(encoding="utf-8"))
    packages = {name: known.told.get(name) or told_by_package(name) for name in names}
    downloads = {name: known.told.get(name, "") for name in downloaded()}
    judged = (judge(*pair, known) for pair in (packages | downloads).items())
    return [line for line in judged if line]


def judge(name: str, licence: str, known: Known) -> str:
    """Return what is wrong with a licence, and what to do; nothing if it may be used."""
    if not licence:
        return f"{name}: its licence is not known: look it up, and write it into {LIST.name}"
    if known.excused.get(name) == licence or _is_allowed(licence, known.allowed):
        return ""
    return (
        f"{name}: its licence is {licence}: do without it; or if it may be used, write into"
        f" {LIST.name} that it is allowed, or excused"
    )


def downloaded() -> Iterator[str]:
    """Yield the names, without versions, of all files that have known sums."""
    for path in sorted(path for folder in SUMS for path in folder.glob("*.sha256")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield _VERSION.sub("", line.split()[1])


def told_by_package(name: str) -> str:
    """Return the licence that an installed package says it has, or nothing if it says none."""
    try:
        said = metadata(name).json
    except PackageNotFoundError:
        return ""
    if expression := said.get("license_expression"):
        return str(expression)
    classified = [each for each in said.get("classifier", ()) if each.startswith(_CLASSIFIER)]
    if classified:
        return " AND ".join(each.rpartition(" :: ")[2] for each in classified)
    named = str(said.get("license", "")).strip()
    return named if len(named) <= _LONGEST and "\n" not in named else ""


def _is_allowed(licence: str, allowed: frozenset[str]) -> bool:
    if "(" in licence and licence.lower() not in allowed:
        return False
    choices = licence.lower().split(" or ")
    return licence.lower() in allowed or any(
        all(each.strip() in allowed for each in choice.split(" and ")) for choice in choices
    )
