"""With which Python Spark's workers run: on this machine ours, on a cluster what was chosen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.support.paths import PROGRAMS
from tests.support.waiting import until

PROGRAM = PROGRAMS / "spark_python.py"
SPARK = Path(pyspark.__file__).parent / "bin" / "spark-class"
WARNING = (
    "Spark's executors run python3, whichever that is there: set PYSPARK_PYTHON, or"
    " spark.pyspark.python, to the Python that has harvest_dagster"
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master of a cluster, without workers; where it is."""
    log = tmp_path / "master.log"
    words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [SPARK, "org.apache.spark.deploy.master.Master", *words],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            stderr=output,
        ) as process,
    ):
        until(lambda: re.search(r"Starting Spark master at", log.read_text()))
        yield re.findall(r"spark://127\.0\.0\.1:\d+", log.read_text())[0]
        process.terminate()


def python_of(*words: str, **environment: str) -> tuple[str, str]:
    """Run the program; return the workers' Python, and what was said beside it."""
    bare = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        env={**bare, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_on_this_machine() -> None:
    """Workers run the very Python of the driver."""
    assert python_of("local[1]")[0] == sys.executable


def test_what_was_chosen() -> None:
    """Nobody's choice is changed: neither the environment's nor the session's."""
    assert python_of("local[1]", PYSPARK_PYTHON="/of/environment")[0] == "/of/environment"
    assert python_of("local[1]", "/of/session")[0] == "/of/session"


def test_on_a_cluster(cluster: str) -> None:
    """Which Python its machines have is not known here: that is said once, and what to set."""
    python, said = python_of(cluster)
    assert (python, said.count(WARNING)) == ("python3", 1)
    assert python_of(cluster, PYSPARK_PYTHON="/there")[0] == "/there"
    python, said = python_of(cluster, "/there")
    assert (python, WARNING in said) == ("/there", False)
