"""Download jars by Ivy, which PySpark brings, from wherever Java's packages come from here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded import downloading
from harvest_dagster.embedded.home_folder import make_private
from harvest_dagster.embedded.known_sums import FOLDER
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable

NAMES = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True)
class Module:
    """Something to download: in a folder `NAME.ivy.xml` lists its parts, `NAME.sha256` their sums.

    If there is one for each kind of machine, `machine` is the kind.
    """

    name: str
    title: str
    machine: str = ""
    folder: Traversable = FOLDER


def resolve(
    java: str, module: Module, into: Path, log: Path, report: Callable[[int, int, int], None]
) -> None:
    """Download to the folder `jars` of `into`.

    What is reported is how many parts are known, how many are here, and how many bytes.
    """
    make_private(into)
    cache = into / "ivy"

    def tell() -> None:
        # Count in the cache alone: Ivy copies all parts to their place at the very end.
        known, here = _count(cache, "ivy-*.xml"), _count(cache, "*.jar")
        report(known, here, downloading.size(cache, "*.jar*"))

    description = module.folder.joinpath(f"{module.name}.ivy.xml")
    with as_file(description) as ivy_file:
        command = [java, f"-Dmachine={module.machine}", "-jar", str(_ivy()), "-confs", "default"]
        command += ["-ivy", str(ivy_file), "-cache", str(cache)]
        command += ["-retrieve", str(into / "jars" / NAMES)]
        done = downloading.run(command, log, lambda: downloading.size(into, "*"), tell)
    if not done:
        raise EmbeddedError(
            f"{module.title} could not be downloaded: see that Java gets through to the network"
            f" (JAVA_TOOL_OPTIONS sets a proxy), then try again; details are in {log}"
        )


def _count(folder: Path, names: str) -> int:
    return sum(1 for _ in folder.rglob(names))


def _ivy() -> Path:
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    for jar in folder.glob("ivy-*.jar"):
        return jar
    raise EmbeddedError("PySpark is not installed: install harvest-dagster[embedded]")
