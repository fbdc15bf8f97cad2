"""Download jars by Ivy, which PySpark brings, from wherever Java's packages come from here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.clock import Deadline
from harvest_dagster.embedded.home_folder import make_private
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable

NAMES = "[artifact]-[revision](-[classifier]).[ext]"
PATIENCE = 900.0
STALL = 90.0
REPORT = 2.0
_CACHE = "ivy"
_FOLDER = files(__package__)


@dataclass(frozen=True)
class Module:
    """Something to download: in a folder `NAME.ivy.xml` lists its parts, `NAME.sha256` their sums.

    If there is one for each kind of machine, `machine` is the kind.
    """

    name: str
    title: str
    machine: str = ""
    folder: Traversable = _FOLDER


def resolve(
    java: str, module: Module, into: Path, log: Path, report: Callable[[int, int], None]
) -> None:
    """Download to the folder `jars` of `into`; report how many parts are known and here."""
    make_private(into)
    description = module.folder.joinpath(f"{module.name}.ivy.xml")
    with as_file(description) as ivy_file, log.open("wb") as output:
        command = [java, f"-Dmachine={module.machine}", "-jar", str(_ivy()), "-confs", "default"]
        command += ["-ivy", str(ivy_file), "-cache", str(into / _CACHE)]
        command += ["-retrieve", str(into / "jars" / NAMES)]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as ivy:
            try:
                done = _follow(ivy, into, report)
            finally:
                ivy.kill()
    if not done:
        raise EmbeddedError(
            f"{module.title} could not be downloaded: see that Java gets through to the network"
            f" (JAVA_TOOL_OPTIONS sets a proxy), then try again; details are in {log}"
        )


def _follow(ivy: subprocess.Popen[bytes], into: Path, report: Callable[[int, int], None]) -> bool:
    deadline, stalled = Deadline(PATIENCE), Deadline(STALL)
    seen = 0
    while not (deadline.over or stalled.over):
        # Count in the cache alone: Ivy copies all parts to their place at the very end.
        report(_count(into / _CACHE, "ivy-*.xml"), _count(into / _CACHE, "*.jar"))
        try:
            return ivy.wait(REPORT) == 0
        except subprocess.TimeoutExpired:
            if (present := _count(into, "*")) != seen:
                seen, stalled = present, Deadline(STALL)
    return False


def _count(folder: Path, names: str) -> int:
    return sum(1 for _ in folder.rglob(names))


def _ivy() -> Path:
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    for jar in folder.glob("ivy-*.jar"):
        return jar
    raise EmbeddedError("PySpark is not installed: install harvest-dagster[embedded]")
