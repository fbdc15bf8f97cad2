"""On what it was measured: the machine, and the versions of what took part."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import confluent_kafka
import psutil
import psycopg

from harvest_dagster import load_settings
from harvest_dagster.embedded.kafka_node import JARS

_PACKAGES = ("harvest-dagster", "confluent-kafka", "psycopg", "pyspark", "dagster")


def describe() -> dict[str, str]:
    """Tell of machine and versions."""
    memory = psutil.virtual_memory().total / 2**30
    librdkafka, _ = confluent_kafka.libversion()
    heap = os.environ.get("KAFKA_HEAP_OPTS", "as its server was started")
    return {
        "machine": f"{os.cpu_count()} cores of {_processor()}, {memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "PostgreSQL": _postgres(),
        "Kafka": f"{JARS.name.removeprefix('kafka-')}, one broker, {heap}; librdkafka {librdkafka}",
        **{name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _postgres() -> str:
    with psycopg.connect(load_settings().postgres_url()) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return str(row[0]) if row else ""
