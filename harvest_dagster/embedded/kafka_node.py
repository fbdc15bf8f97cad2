"""A node of Kafka, broker and controller in one: set it up, say how it is run and reached."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harvest_dagster.embedded import certificates
from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.kafka_properties import ADMIN, MECHANISM, USER, render
from harvest_dagster.embedded.ports import HOST
from harvest_dagster.embedded.process import Daemon, environment
from harvest_dagster.embedded.server_logs import last_word, log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.config import KafkaConfig
    from harvest_dagster.embedded.home_state import HomeState

JARS = Module("kafka-4.3.0", "Apache Kafka")
MAIN = "kafka.Kafka"

_QUIET = ("org.slf4j.simpleLogger.defaultLogLevel=warn",)
_DATED = (
    "org.slf4j.simpleLogger.showDateTime=true",
    "org.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)


def daemon(home: Path, node: int) -> Daemon:
    """Return how the node is recognised, and how it is asked to stop."""
    return Daemon(
        name=f"kafka-{node}",
        program="java",
        marks=frozenset({MAIN, str(_properties(home, node))}),
        log=log_of(home, f"kafka-{node}"),
        ladder=((signal.SIGTERM, 12),),
    )


def is_set_up(home: Path, node: int) -> bool:
    """Return whether the data directory is formatted; the storage tool writes this file last."""
    return (_folder(home, node) / "data" / "meta.properties").exists()


def configure(home: Path, state: HomeState, node: int) -> None:
    """Write the node's properties, at each start, because its ports may have changed."""
    make_private(_folder(home, node).parent)
    make_private(_folder(home, node))
    write_private(_properties(home, node), render(home, state, node))


def set_up(home: Path, state: HomeState, node: int, java: str, jars: Path) -> None:
    """Format the data directory."""
    arguments = _folder(home, node) / "format.arguments"
    write_private(arguments, "\n".join(_format(home, state, node)))
    made = subprocess.run(
        [*_jvm(java, jars), "kafka.tools.StorageTool", f"@{arguments}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    arguments.unlink()
    if made.returncode:
        reason = last_word(made.stderr + made.stdout)
        raise EmbeddedError(f"kafka-{node} could not be set up: {reason}")


def command(home: Path, node: int, java: str, jars: Path) -> list[str]:
    """Return the command line of the node."""
    heap = os.environ.get(
        "KAFKA_HEAP_OPTS", "-Xmx512m"
    ).split()  # the variable that Kafka's own script reads
    options = [*heap, "-XX:+ExitOnOutOfMemoryError", *(f"-D{each}" for each in _DATED)]
    crash = f"-XX:ErrorFile={log_of(home, f'kafka-{node}-crash')}"
    return [*_jvm(java, jars), *options, crash, MAIN, str(_properties(home, node))]


def client_config(home: Path, state: HomeState) -> KafkaConfig:
    """Return the settings of a client by librdkafka."""
    if not state.secure:
        return {"bootstrap.servers": _addresses(state, "kafka")}
    return {
        "bootstrap.servers": _addresses(state, "kafka"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": USER,
        "sasl.password": state.password,
        "ssl.ca.location": str(certificates.ca(home)),
    }


def mtls_config(home: Path, state: HomeState) -> KafkaConfig:
    """Return the settings of a client that shows a certificate in place of a password."""
    own = str(certificates.client(home))
    return {
        "bootstrap.servers": _addresses(state, "mtls"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca(home)),
        "ssl.certificate.location": own,
        "ssl.key.location": own,
    }


def answers(home: Path, state: HomeState) -> bool:
    """Return whether each node answers, and knows all the others."""
    return all(_answers(home, state, node) for node in state.nodes)


def _addresses(state: HomeState, door: str) -> str:
    return ",".join(f"{HOST}:{state.ports[f'{door}-{node}']}" for node in state.nodes)


def _answers(home: Path, state: HomeState, node: int) -> bool:
    server = f"{HOST}:{state.ports[f'kafka-{node}']}"
    only: KafkaConfig = {"bootstrap.servers": server, "log_level": 0}
    admin = AdminClient({**client_config(home, state), **only})
    try:
        return len(admin.list_topics(timeout=1).brokers) == state.brokers
    except KafkaException:
        return False


def _format(home: Path, state: HomeState, node: int) -> list[str]:
    arguments = ["format", "-t", state.cluster_id, "-c", str(_properties(home, node))]
    if not state.secure:
        return arguments
    users = {ADMIN: state.admin_password, USER: state.password}
    scram = [f"{MECHANISM}=[name={name},password={word}]" for name, word in users.items()]
    return arguments + [part for user in scram for part in ("--add-scram", user)]


def _jvm(java: str, jars: Path) -> list[str]:
    return [java, "-cp", f"{jars}/*", *(f"-D{each}" for each in _QUIET)]


def _properties(home: Path, node: int) -> Path:
    return _folder(home, node) / "server.properties"


def _folder(home: Path, node: int) -> Path:
    return home / "kafka" / str(node)
