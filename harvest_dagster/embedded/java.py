"""Find a Java that is new enough for Kafka."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from harvest_dagster.errors import EmbeddedError

OLDEST = 17


def find_java() -> str:
    """Return the path of Java: that of JAVA_HOME if it is set, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        raise EmbeddedError(
            f"Kafka needs Java {OLDEST} or newer, and JAVA_HOME={home} has no bin/java: correct it"
            if home
            else f"Kafka needs Java {OLDEST} or newer: install it, or set JAVA_HOME"
        )
    _check(java)
    return java


def major_version(text: str) -> int:
    """Read the major version from what `java -version` prints; return 0 if it has none."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else 0


def _check(java: str) -> None:
    shown = subprocess.run(
        [java, "-version"], capture_output=True, text=True, check=False, timeout=60
    )
    version = major_version(shown.stderr + shown.stdout)
    if version < OLDEST:
        raise EmbeddedError(
            f"Kafka needs Java {OLDEST} or newer, and {java} is {version or 'none'}:"
            " install a newer one, or set JAVA_HOME"
        )
