"""Make the virtual environment `.venv` from pinned, hashed requirements; called by `make`.

It runs on any Python 3, before anything is installed, so it uses the standard library alone. At
the end it writes into `.venv/ready` what the environment was made from. So a run that was
interrupted is done again, and a run that finds nothing changed does nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
READY = VENV / "ready"
BOOTSTRAP = ROOT / "requirements" / "bootstrap.txt"
PINNED = ROOT / "requirements" / "dev.txt"
LOG = ROOT / ".venv-setup.log"

NEED_PYTHON = (3, 11)
NEED_JAVA = 17
NEED_BYTES = 4 * 2**30


def main() -> None:
    """Check the machine, then make what is missing."""
    find_python()
    mark = fingerprint()
    if READY.exists() and READY.read_text() == mark:
        return
    find_java()
    find_space()
    say("1/4  the virtual environment .venv")
    make_venv()
    say("2/4  pinned packages (about 110, 700 MB; a few minutes the first time)")
    install()
    say("3/4  the command .venv/bin/harvest")
    link()
    say("4/4  an archive of Spark's classes, so that it starts in half of the time (once, 20 s)")
    archive()
    READY.write_text(mark)


def find_python() -> None:
    """Run this script again by a newer Python if this one is too old."""
    if sys.version_info >= NEED_PYTHON:
        return
    for name in ("python3.14", "python3.13", "python3.12", "python3.11"):
        found = shutil.which(name)
        if (
            found
            and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0
        ):
            os.execv(found, [found, *sys.argv])  # noqa: S606 - the same script, by a newer Python
    fail(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: install python3.11")


def find_java() -> None:
    """Fail early if there is no Java that Kafka and Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118
    if not java or not os.path.exists(java):  # noqa: PTH110
        fail("Java 17 or newer is needed, none was found: install it, or set JAVA_HOME")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < NEED_JAVA:
        fail(f"Java 17 or newer is needed, {java} is not: install it, or set JAVA_HOME")


def find_space() -> None:
    """Fail early if the disk has no room for the packages."""
    free = shutil.disk_usage(ROOT).free
    if free < NEED_BYTES:
        fail(f"the disk of {ROOT} has {free / 2**30:.1f} GB free, 4 are needed: make room")


def make_venv() -> None:
    """Make the environment, unless it is there and its pip runs."""
    pip = (
        subprocess.run([str(PYTHON), "-m", "pip", "-V"], capture_output=True, check=False)
        if (PYTHON.exists())
        else None
    )
    if pip is None or pip.returncode != 0:
        run([sys.executable, "-m", "venv", "--clear", str(VENV)], "install python3-venv")


def install() -> None:
    """Install uv, checked by its hash, and with it everything that is pinned."""
    advice = "see whether the package registry can be reached, then run `make` again"
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--require-hashes", "--no-deps", "-r", str(BOOTSTRAP)], advice)
    # Compile all of it once, now. Where Python may not write bytecode, each process would compile
    # it again, and one Dagster is half a dozen processes.
    pinned = ["--require-hashes", "-r", str(PINNED), "-b", str(BOOTSTRAP)]
    run([*uv("install"), "--compile-bytecode", *pinned], advice)


def link() -> None:
    """Install the project itself, such that edits take effect at once."""
    run(
        [*uv("install"), "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
        "read the log for the fault in pyproject.toml",
    )


def archive() -> None:
    """Make the archive that lets Spark start faster; without it Spark starts too."""
    with LOG.open("a") as log:
        command = [str(PYTHON), "-m", "harvest_dagster.spark.classes"]
        done = subprocess.run(command, stdout=log, stderr=log, check=False)
    if done.returncode:
        say(f"     could not be made, which only costs time (details: {LOG.name})")


def uv(*words: str) -> list[str]:
    """Return a command line of the environment's uv."""
    return [str(VENV / "bin" / "uv"), "pip", *words, "--python", str(PYTHON)]


def fingerprint() -> str:
    """Return a hash of what the environment is made from."""
    files = (BOOTSTRAP, PINNED, ROOT / "pyproject.toml")
    content = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(content + str(ROOT).encode()).hexdigest()


def run(command: list[str], advice: str) -> None:
    """Run a step, show its progress and log its output; if it fails, exit with one line."""
    shown = sys.stderr if sys.stderr.isatty() else None
    with LOG.open("a") as log:
        done = subprocess.run(command, stdout=log, stderr=shown or log, check=False)
    if done.returncode:
        fail(f"`{' '.join(command[:4])} ...` failed: {advice} (details: {LOG.name})")


def say(line: str) -> None:
    """Print a line about what happens now."""
    print(f"setup {line}", flush=True)


def fail(line: str) -> NoReturn:
    """Exit with one line."""
    sys.exit(f"setup: {line}")


if __name__ == "__main__":
    main()
