"""Where the archive of Spark's classes is, which `harvest_dagster.spark.classes` makes."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
"""Has a JVM that can't use the archive start without it, and say nothing."""


def archive() -> Path:
    """Return the path of the archive, whether it was made or not."""
    home = os.environ.get("XDG_CACHE_HOME")
    cache = Path(home) if home else Path.home() / ".cache"
    return cache / "harvest_dagster" / f"spark-{pyspark.__version__}.jsa"


def java_options() -> str:
    """Return the value for `spark.driver.extraJavaOptions`; empty if there is no archive."""
    found = archive()
    return f"-XX:SharedArchiveFile={found} {QUIET}" if found.exists() else ""
