"""What the cells download as jars: by their coordinates, with the sums in the folder `sums`.

A new version is a line in `cells.py`, and a file with its jars' sums, as `sha256sum` writes it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harvest_dagster.embedded.ivy import Module
from scripts.matrix import FOLDER

MACHINE = "linux-amd64"
"""The only kind of machine whose PostgreSQL and Python have sums here; Kafka's jars fit any."""

SUMS = Path(__file__).parent / "sums"
_MADE = FOLDER / "builds"
_IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="harvest_dagster" module="matrix"/>
  <dependencies>
    {}
  </dependencies>
</ivy-module>
"""
_ONE = '<dependency org="{}" name="{}" rev="{}" conf="*->default"/>'
_PYTHON = """<dependency org="org.bytedeco" name="cpython" rev="{}" transitive="false">
      <artifact name="cpython" type="jar" m:classifier="linux-x86_64"/>
    </dependency>"""


def kafka(version: str) -> Module:
    """Return what a Kafka is run from."""
    broker = _ONE.format("org.apache.kafka", "kafka_2.13", version)
    log = _ONE.format("org.slf4j", "slf4j-simple", "2.0.17")
    return _module(f"kafka-{version}", "Apache Kafka", broker + log)


def postgres(version: str) -> Module:
    """Return the programs of a PostgreSQL."""
    name = f"embedded-postgres-binaries-{MACHINE}"
    only = _ONE.format("io.zonky.test.postgres", name, version)
    return _module(f"postgres-{version}", "PostgreSQL", only)


def python(version: str) -> Module:
    """Return a Python, by its version and that of its packing."""
    return _module(f"python-{version}", "Python", _PYTHON.format(version))


def _module(name: str, title: str, dependencies: str) -> Module:
    _MADE.mkdir(parents=True, exist_ok=True)
    (_MADE / f"{name}.ivy.xml").write_text(_IVY.format(dependencies), encoding="utf-8")
    shutil.copy(SUMS / f"{name}.sha256", _MADE)
    return Module(name, f"{title} {name.partition('-')[2]}", folder=_MADE)
