"""Install Chromium for the tests of the UI, or say why they are left out; `make test` runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / ".venv-setup.log"
NAMES = ("chromium", "chromium-browser")
APT = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
STEPS = (
    [*APT, "update"],
    [*APT, "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
)


def main() -> None:
    """Install Debian's package if Chromium is missing and we may install it."""
    if find_chromium():
        return
    reason = why_not() or install()
    if reason is None:
        return
    print(f"browser tests are left out: {reason}", flush=True)
    if os.environ.get("CI"):
        sys.exit("browser tests may not be left out in CI: install the package chromium")


def find_chromium() -> str | None:
    """Return the path of Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def why_not() -> str | None:
    """Return why Chromium can't be installed here, or None if it can."""
    if shutil.which("apt-get") is None:
        return "Chromium is not installed, and there is no apt-get to install it with"
    if os.geteuid() != 0:
        return "Chromium is not installed: `sudo apt-get install chromium`"
    return None


def install() -> str | None:
    """Install it; return why that failed, or None."""
    print("setup      the package chromium, for the tests of the UI (100 MB)", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with LOG.open("a") as log:
        for step in STEPS:
            done = subprocess.run(step, stdout=log, stderr=log, env=environment, check=False)
            if done.returncode:
                return f"`{' '.join(step)}` failed (details: {LOG.name})"
    return None


if __name__ == "__main__":
    main()
