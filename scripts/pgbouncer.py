"""Fetch Debian's PgBouncer, for the tests of poolers: `python -m scripts.pgbouncer`.

No package index has it as a wheel, nor any Maven repository as a jar. On a machine with apt it is
unpacked into the cache of downloads, with the libraries that a bare system lacks; nothing is
installed. Elsewhere install it: the tests look on the PATH too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from harvest_dagster.embedded import download_cache

FOLDER = download_cache.place("pgbouncer")
PROGRAM = FOLDER / "usr" / "sbin" / "pgbouncer"
_LIBRARIES = ("libevent", "libc-ares", "libcares")


def main() -> None:
    """Fetch it, unless it is there."""
    if shutil.which("apt-get") is None:
        sys.exit("pgbouncer comes by apt-get, which is not here: install pgbouncer another way")
    download_cache.fill(FOLDER, PROGRAM.exists, _fetch, print)
    print(PROGRAM)


def libraries() -> str:
    """Return where its libraries are, as LD_LIBRARY_PATH has it."""
    return ":".join(map(str, (FOLDER / "usr" / "lib").glob("*-linux-*")))


def _fetch(folder: Path) -> Path:
    folder.mkdir(parents=True)
    needed = _said("apt-cache", "depends", "pgbouncer").split()
    packages = ["pgbouncer", *(name for name in needed if name.startswith(_LIBRARIES))]
    subprocess.run(["apt-get", "-q", "download", *packages], cwd=folder, check=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
    return folder / "root"


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
