"""A password that works is nowhere to be seen while it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from harvest_dagster import Message, stash
from harvest_dagster.embedded import ports
from harvest_dagster.ledger import lease as leases
from harvest_dagster.work import tours
from tests.support.command import Harvest
from tests.support.place import Place
from tests.support.secure import Secure
from tests.support.waiting import until

YAML = """\
harvest:
  harvestName: {name}
  delivery: exactly_once
  metrics: "{metrics}"
  baseKafkaConfig: {kafka}
  dataSource: {postgres}
logging: {{level: All}}
"""


@pytest.fixture
def place(secure: Secure) -> Place:
    """A place on the servers that ask for TLS."""
    return Place(secure.postgres, secure.kafka)


def pairs(url: str) -> str:
    """Write a URL as Go does, which is what `dataSource` has."""
    return " ".join(f"{key}={value}" for key, value in conninfo_to_dict(url).items())


@pytest.fixture
def reaping(secure: Secure, place: Place, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A reap that logs all there is, librdkafka's security included; its log, and its metrics."""
    metrics = f"127.0.0.1:{ports.choose(['metrics'])['metrics']}"
    kafka = {**secure.kafka, "debug": "security,conf"}
    file, log = tmp_path / "reaper.yaml", tmp_path / "log"
    file.write_text(
        YAML.format(
            name=place.name,
            metrics=metrics,
            kafka=json.dumps(kafka),
            postgres=json.dumps(pairs(secure.postgres)),
        )
    )
    command = [sys.executable, "-m", "harvest_dagster", "reap", "-f", str(file)]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ}) as process,
    ):
        yield log, metrics
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_it_is_nowhere(
    secure: Secure, place: Place, reaping: tuple[Path, str], harvest: Harvest
) -> None:
    """Not in a log of anybody's, a page, a table, a command's output, or a command line."""
    log, metrics = reaping
    place.put(20)
    place.drained()
    with psycopg.connect(secure.postgres) as connection:
        stash(connection, Message("no-such-topic", "k", "v"))
    until(lambda: "held" in place.kinds())
    small = place.new_topic(max_message_bytes="2000")
    place.stash([Message(small, "k", "x" * 5000)])
    until(lambda: "parked" in place.kinds(), what="a record is parked")
    tour(place)
    seen = {
        "log": log.read_text(),
        "metrics": page(metrics, "metrics") + page(metrics, "health"),
        "command lines": "\n".join(command_lines()),
        "activity": rows(place, "SELECT * FROM pg_stat_activity"),
        "settings": rows(place, "SELECT name, setting FROM pg_settings"),
        **{table: rows(place, f"SELECT * FROM harvest.{table}") for table in TABLES},
        **{file.name: file.read_text() for file in (secure.servers.home / "logs").glob("*.log")},
        **{" ".join(words): shown(harvest, secure, *words) for words in COMMANDS},
    }
    assert "harvest_published_records_total" in seen["metrics"]
    assert "reap -f" in seen["command lines"]
    assert place.name in seen["event"]
    for where, text in seen.items():
        assert text or where.endswith(".log"), where
        assert secure.password not in text, where


TABLES = ("event", "lease", "claim", "tour", "parked")
COMMANDS = (
    ("status", "--json"),
    ("history", "--json"),
    ("outbox", "check"),
    ("outbox", "stats", "--json"),
    ("dev", "status"),
    ("dev", "logs", "-n", "1000"),
)


def tour(place: Place) -> None:
    """Leave what a run of Dagster's that was killed leaves: its tour, and a claim."""
    with place.connect() as connection:
        lease = leases.acquire(connection, "killed", 0, "gone", 0.1)
        assert tours.begin(connection, lease, uuid.uuid4(), "a run")
        connection.execute(
            "INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)"
            " VALUES ('killed', 0, %s, 1, '{[1,2)}', 1)",
            (lease.epoch,),
        )


def shown(harvest: Harvest, secure: Secure, *words: str) -> str:
    """Run a command, and tell all that it says."""
    home = {"HARVEST_HOME": str(secure.servers.home)} if words[0] == "dev" else {}
    done = harvest(*words, HARVEST_POSTGRES=secure.postgres, **home)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def page(address: str, name: str) -> str:
    """Read a page."""
    with urllib.request.urlopen(f"http://{address}/{name}", timeout=5) as answer:
        return str(answer.read().decode())


def rows(place: Place, query: str) -> str:
    """Read a table as text."""
    return "\n".join(map(str, place.rows(query)))


def command_lines() -> Iterator[str]:
    """Tell what everybody on this machine may see of its processes."""
    for process in psutil.process_iter(["cmdline"]):
        found: list[Any] = process.info["cmdline"] or []
        yield " ".join(map(str, found))
