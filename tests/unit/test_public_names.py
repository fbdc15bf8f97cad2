"""What users import from the root is found when it is first used, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import harvest_dagster

HEAVY = {"click", "confluent_kafka", "psycopg", "pydantic", "sqlalchemy"}


@pytest.mark.parametrize("name", harvest_dagster.__all__)
def test_each_is_found(name: str) -> None:
    """Each public name is there, is shown by `dir`, and is of this package."""
    assert name in dir(harvest_dagster)
    assert getattr(harvest_dagster, name).__module__.startswith("harvest_dagster.")


def test_no_other_is_found() -> None:
    """A name that is not public is refused as Python does it."""
    assert not hasattr(harvest_dagster, "ledgers")


def test_the_import_alone_loads_little() -> None:
    """So the command can handle Ctrl-C before it loads what it needs."""
    program = f"import sys, harvest_dagster.__main__; print(*({HEAVY} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
