from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.embedded import Servers
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.reaping import Reap, Reaping
    from tests.support.topics import MakeTopic, Published

SECRET = "hunter2"  # noqa: S105 - what must not be shown
README = """\
harvest:
  baseKafkaConfig:\x20
    bootstrap.servers: {kafka}
  producerKafkaConfig:
    compression.type: lz4
    delivery.timeout.ms: 10000
  leaderTopic: {name}
  leaderGroupID: {name}
  dataSource: {data_source}
  outboxTable: goharvest_outbox
  limits:
    minPollInterval: 1s
    heartbeatTimeout: 5s
    maxInFlightRecords: 1000
    minMetricsInterval: 5s
    sendConcurrency: 4
    sendBuffer: 10
logging:
  level: Debug
"""


@pytest.fixture
def readme(servers: Servers, data_source: str, topic: str) -> str:
    """The reaper.yaml of goharvest's README, with this test's places and names."""
    text = README.format(kafka=servers.kafka, name=f"lead-{topic}", data_source=data_source)
    Path("reaper.yaml").write_text(text)
    return "reaper.yaml"


def fetched(url: str) -> tuple[int, str]:
    """The status and the body of a page."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def address(reaping: Reaping) -> str:
    """Where the figures are, as the log tells it."""
    found = re.search(r"(http://\S+)/metrics", reaping.log)
    return found[1] if found else ""


@pytest.fixture
def pumped(harvest: Harvest, made_topic: MakeTopic) -> Callable[[str, int], str]:
    """Fill an outbox; tell the topic."""

    def pump(outbox: str, records: int) -> str:
        topic = made_topic()
        options = ("--records", str(records), "--keys", "50", "--size", "20")
        assert harvest("pump", *options, "--topic", topic, "--outbox", outbox).returncode == 0
        return topic

    return pump


Pumped = Callable[[str, int], str]


def test_goharvest(
    pumped: Pumped,
    reap: Reap,
    readme: str,
    published: Published,
    left: Callable[[str], int],
) -> None:
    """What goharvest's README has in its reaper.yaml drains its table, each key in its order."""
    topic = pumped("goharvest_outbox", 2000)
    reaping = reap("-f", readme, "--log", "json")
    until(lambda: left("goharvest_outbox") == 0)
    assert reaping.stopped() == 0
    found = published(topic, 2000)
    for key in {key for key, _ in found}:
        numbers = [int(value) for its, value in found if its == key]
        assert numbers == list(range(int(key), 2000, 50))
    told = [json.loads(line) for line in reaping.log.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(told[0])
    assert told[-1]["message"] == "ended: 2,000 published, 0 parked"


def test_metrics(pumped: Pumped, reap: Reap, outbox: str) -> None:
    """Figures and health are served where asked for, and count what was done."""
    reaping = reap("--metrics", "0", HARVEST_OUTBOX=outbox)
    until(lambda: address(reaping))
    metrics, health = f"{address(reaping)}/metrics", f"{address(reaping)}/health"
    pumped(outbox, 3000)
    labels = f'{{name="{outbox}",shard="0"}}'
    purged = f"harvest_purged_records_total{labels} 3000.0\n"
    until(lambda: purged in fetched(metrics)[1])
    _, text = fetched(metrics)
    for line in ("published_records_total", "leader", "epoch", "in_flight_records"):
        assert f"\nharvest_{line}{labels} " in text
    assert f"harvest_leader{labels} 1.0\n" in text
    until(lambda: f'harvest_backlog_records{{name="{outbox}"}} 0.0\n' in fetched(metrics)[1])
    status, said = fetched(health)
    assert (status, json.loads(said)) == (200, {"state": "running", "leader": True, "shards": [0]})
    assert fetched(f"{address(reaping)}/nothing")[0] == 404
    assert reaping.stopped() == 0
    assert "ended: 3,000 published, 0 parked\n" in reaping.log


def test_figures_are_logged_while_they_change(pumped: Pumped, reap: Reap, outbox: str) -> None:
    """Where no terminal is, figures are log lines, and there are none while nothing moves."""
    pumped(outbox, 500)
    reaping = reap(HARVEST_OUTBOX=outbox)
    until(lambda: "leader, epoch 1 | " in reaping.log)
    assert re.search(
        r"^\S+ \S+ INFO +leader, epoch 1 \| \d+/s \| backlog 0 \| 0 in flight \| oldest 0.0 s$",
        reaping.log,
        re.MULTILINE,
    )
    assert reaping.stopped() == 0
    assert reaping.log.count("in flight | ") == 1


def test_live_line(outbox: str, database: str, servers: Servers) -> None:
    """On a terminal one line is rewritten in place, and log lines go above it."""
    known = {"HARVEST_POSTGRES": database, "HARVEST_KAFKA": servers.kafka, "HARVEST_OUTBOX": outbox}
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "harvest_dagster", "reap"],
        stderr=terminal,
        env={**os.environ, **known},
    ) as process:
        os.close(terminal)
        seen = b""
        while b"leader, epoch 1 | 0/s | backlog " not in seen:
            seen += os.read(ours, 4096)
        assert b"\r\x1b[Kstandby\r\x1b[K" in seen
        assert re.search(rb"\r\x1b\[K\S+ \S+ INFO +acquired: epoch 1 of .*\r\n", seen)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    os.close(ours)


@pytest.fixture
def stuck(outbox: str, database: str, reap: Reap) -> Any:
    """Start a reap that can't finish, because somebody else has locked the outbox."""
    waiting = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
                  WHERE NOT granted AND relation = %s::regclass
                    AND datname = current_database()"""
    with psycopg.connect(database) as other:
        other.execute(f"LOCK TABLE {outbox}")

        def start(*words: str) -> Reaping:
            reaping = reap(*words, HARVEST_OUTBOX=outbox)
            until(lambda: other.execute(waiting, (outbox,)).fetchone() != (0,))
            return reaping

        yield start


def test_second_signal(stuck: Callable[..., Reaping]) -> None:
    """A second signal ends what does not settle, at once and not well, and says so."""
    reaping = stuck()
    reaping.term()
    until(lambda: "SIGTERM: what is in flight settles first" in reaping.log)

    def has_ended() -> bool:
        reaping.term()
        return reaping.process.poll() is not None

    until(has_ended, 5)
    assert reaping.process.returncode == 1
    assert reaping.log.endswith(
        "SIGTERM: ends at once; the next leader marks again what was in flight\n"
    )


def test_stop_seconds(stuck: Callable[..., Reaping]) -> None:
    """What does not settle in the time that it is given is ended, not well, and says so."""
    reaping = stuck("--stop-seconds", "1.5")
    assert reaping.stopped() == 1
    assert "not settled after 1.5 s: ends at once; the next leader" in reaping.log


def test_signal_that_is_sent_twice(outbox: str, reap: Reap) -> None:
    """A signal that follows at once, as `timeout` sends it, is no second one."""
    reaping = reap(HARVEST_OUTBOX=outbox)
    until(lambda: "acquired: epoch 1" in reaping.log)
    reaping.term()
    reaping.term()
    assert reaping.stopped() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-f", "nowhere.yaml"), "nowhere.yaml: it can't be read"),
        (("-f", "wrong.yaml"), "wrong.yaml: harvest.leaderTopik (line 2): no such key"),
        (("--metrics", "here"), "metrics: this is no address: give a port"),
        (("--metrics", "192.0.2.1:80"), "metrics: 192.0.2.1:80 can't be listened on"),
        (("--outbox", "a b"), "outbox"),
    ],
)
def test_refused(reap: Reap, outbox: str, words: tuple[str, ...], said: str) -> None:
    """What can't be is refused in one line."""
    Path("wrong.yaml").write_text("harvest:\n  leaderTopik: a\n")
    reaping = reap(*words, HARVEST_OUTBOX=outbox)
    assert reaping.process.wait(20) == 1
    assert (said in reaping.log, reaping.log.count("\n")) == (True, 1)
    assert reaping.log.startswith("harvest: ")


def test_file_and_outbox(reap: Reap, readme: str) -> None:
    """A file tells the outbox, so that an option can't tell another."""
    reaping = reap("-f", readme, "--outbox", "other")
    assert reaping.process.wait(20) == 2
    assert "--outbox and --postgres go without -f" in reaping.log


def test_port_that_is_taken(reap: Reap, outbox: str) -> None:
    """A port that somebody has is told in one line."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reaping = reap("--metrics", str(port), HARVEST_OUTBOX=outbox)
        assert reaping.process.wait(20) == 1
    said = f"harvest: metrics: 127.0.0.1:{port} can't be listened on: Address already in use"
    assert reaping.log.startswith(said)
    assert reaping.log.count("\n") == 1


def test_secrets(reap: Reap, readme: str) -> None:
    """Passwords are not logged, at any level, nor when they are wrong."""
    text = Path(readme).read_text()
    text = re.sub(r" password=\S*", f" password={SECRET}", text).replace("Debug", "All")
    Path(readme).write_text(
        text.replace("  leaderTopic", f"    sasl.password: {SECRET}\n  leaderTopic")
    )
    reaping = reap("-f", readme)
    until(lambda: "password authentication failed" in reaping.log)
    assert reaping.stopped() == 0
    assert SECRET not in reaping.log
