"""An archive of Spark's classes, with which its JVM starts in about half of the time.

    python -m harvest_dagster.spark.classes

makes it, once for a user and a version of Spark. A session that is given `java_options` takes its
classes from there. A JVM that can't use the archive, such as one of another Java, starts without it
and says nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyspark.sql

from harvest_dagster.spark.class_archive import QUIET, archive


def main() -> None:
    """Make the archive from a session that does a little of everything, unless it is there."""
    if archive().exists():
        return
    archive().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive().parent) as folder:
        made = Path(folder) / "spark.jsa"
        _run(f"-XX:ArchiveClassesAtExit={made} {QUIET}")
        made.replace(archive())


def _run(options: str) -> None:
    session = (
        pyspark.sql.SparkSession.builder.master("local[1]")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    frame = session.range(10).selectExpr("id % 2 AS half", "string(id) AS text")
    frame.groupBy("half").count().collect()
    session.stop()
    _end_jvm()


def _end_jvm() -> None:
    """End the JVM, which writes the archive then, and wait for it."""
    gateway = pyspark.SparkContext._gateway  # noqa: SLF001 - Spark offers no other way to it
    if gateway is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    main()
