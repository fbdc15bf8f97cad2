"""PostgreSQL and one broker: up, killed, in the way of others, down."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harvest_dagster import embedded
from harvest_dagster.errors import EmbeddedError
from tests.support.killed import kill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harvest_dagster.embedded import Servers

    Processes = Callable[[Path], list[str]]

UP = "import sys, pathlib, harvest_dagster.embedded as e; e.up(pathlib.Path(sys.argv[1]))"


def pids(servers: Servers) -> dict[str, int | None]:
    """Tell the pid of each server."""
    return {server.name: server.pid for server in servers.each}


def keep(servers: Servers, text: str) -> None:
    """Put a text into a table and into a topic."""
    with psycopg.connect(servers.postgres) as connection:
        connection.execute("CREATE TABLE kept AS SELECT %s::text AS text", [text])
    topic = NewTopic("kept", num_partitions=1)
    admin = AdminClient(servers.kafka_config)
    admin.create_topics([topic])["kept"].result()
    producer = Producer({**servers.kafka_config})
    producer.produce("kept", text)
    assert producer.flush(10) == 0


def kept(servers: Servers) -> tuple[str, str]:
    """Tell what the table and the topic have."""
    with psycopg.connect(servers.postgres) as connection:
        row = connection.execute("SELECT text FROM kept").fetchone()
    reads = {"group.id": "test", "auto.offset.reset": "earliest"}
    consumer = Consumer({**servers.kafka_config, **reads})
    consumer.subscribe(["kept"])
    message = consumer.poll(20)
    consumer.close()
    assert row
    assert message
    return row[0], (message.value() or b"").decode()


def test_killed_servers_come_back_with_their_data(home: Path) -> None:
    """`up` restarts what was killed, and only that, and nothing is lost."""
    servers = embedded.up(home)
    keep(servers, "still here")
    kill(servers, "postgres")
    revived = embedded.up(home)
    assert pids(revived)["kafka-1"] == pids(servers)["kafka-1"]
    kill(revived, "postgres", "kafka-1")
    assert not embedded.status(home).running
    assert kept(embedded.up(home)) == ("still here", "still here")


@pytest.mark.long
def test_a_taken_port_is_named_and_new_ports_keep_the_data(home: Path) -> None:
    """A foreign program on a remembered port does not stop `up --new-ports`."""
    servers = embedded.up(home)
    keep(servers, "moved")
    embedded.down(home)
    port = servers.each[-1].port
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(EmbeddedError, match=rf"port {port} .*harvest dev up --new-ports"):
            embedded.up(home)
        assert kept(embedded.up(home, new_ports=True)) == ("moved", "moved")


@pytest.mark.long
def test_down_leaves_no_process_even_without_its_state(home: Path, processes: Processes) -> None:
    """`down` knows its processes by themselves, and can be repeated."""
    embedded.up(home)
    assert len(processes(home)) >= 2
    (home / "state.json").unlink()
    embedded.down(home)
    embedded.down(home)
    assert processes(home) == []
    assert not (home / "servers.json").exists()


@pytest.mark.long
def test_several_ups_at_once_start_one_set_of_servers(home: Path) -> None:
    """Whoever comes second waits, and then finds all running."""
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(run_up, home) for _ in range(3)]
        said = "".join(run.result() for run in runs)
    assert said.count("starting postgres") == 1
    assert "waiting for another" in said
    assert embedded.status(home).running


def run_up(home: Path) -> str:
    """Run `up` in a process of its own, and tell what it said."""
    command = [sys.executable, "-c", UP, str(home)]
    return subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr


def test_an_interrupted_up_leaves_no_process(home: Path, processes: Processes) -> None:
    """Ctrl-C stops what this `up` started, even when its terminal is closed at once."""
    command = [sys.executable, "-c", UP, str(home)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr
        while not up.stderr.readline().startswith("starting"):
            assert up.poll() is None
        up.send_signal(signal.SIGINT)
    assert up.returncode
    assert processes(home) == []
