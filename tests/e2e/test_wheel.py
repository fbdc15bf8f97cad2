"""What a user installs: the wheel, in an environment that has nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

LIBRARY = ROOT / "harvest_dagster"
UV = str(Path(sys.executable).parent / "uv")
NOT_NEEDED = ("dagster", "pyspark", "psutil")


def run(*command: str) -> str:
    """Run a command that must end well; tell what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of this tree, since a build leaves its traces there."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("harvest_dagster", "assets", "resources", "sensors"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run(UV, "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(folder))
    return next((folder / "dist").glob("*.whl"))


def test_the_wheel_ships_the_library_alone(wheel: Path) -> None:
    """Neither the code location nor tests get into a wheel; SQL, migrations and grants do."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"harvest_dagster"}
    assert "harvest_dagster/postgres/migrations/0001_stash.sql" in names
    assert "harvest_dagster/ledger/grants.toml" in names
    read = [file for kind in ("sql", "toml") for file in LIBRARY.rglob(f"*.{kind}")]
    assert {str(file.relative_to(ROOT)) for file in read} <= {*names}


def test_the_core_needs_neither_dagster_nor_spark(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment everything of the core imports, and the command runs."""
    run(UV, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "env"))
    python = str(tmp_path / "env" / "bin" / "python")
    run(UV, "pip", "install", "--quiet", "--python", python, str(wheel))
    imports = "import harvest_dagster.cli, harvest_dagster.outbox.stash_sqlalchemy"
    loaded = run(python, "-c", f"{imports}, sys; print(*sys.modules)").split()
    assert not {name.split(".")[0] for name in loaded} & set(NOT_NEEDED)
    assert "harvest" in run(str(tmp_path / "env" / "bin" / "harvest"), "--help")
