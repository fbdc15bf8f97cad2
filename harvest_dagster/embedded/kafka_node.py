"""A node of Kafka, broker and controller in one: set it up, say how it is run and reached."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harvest_dagster.embedded import certificates
from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.jars import folder_of, have_jars
from harvest_dagster.embedded.kafka_properties import ADMIN, MECHANISM, USER, render
from harvest_dagster.embedded.ports import HOST
from harvest_dagster.embedded.process import Daemon, environment
from harvest_dagster.embedded.server_logs import last_word, log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.config import KafkaConfig
    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.part import Say, Site

JARS = Module("kafka-4.3.0", "Apache Kafka")
MAIN = "kafka.Kafka"

_QUIET = ("org.slf4j.simpleLogger.defaultLogLevel=warn",)
_DATED = (
    "org.slf4j.simpleLogger.showDateTime=true",
    "org.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
)


@dataclass(frozen=True)
class KafkaNode:
    """One node of Kafka, by its number, and the jars that it is run from."""

    number: int
    jars: Module = JARS

    @property
    def name(self) -> str:
        """Return its name."""
        return f"kafka-{self.number}"

    def ports(self, state: HomeState) -> dict[str, int]:
        """Return its listeners' ports: of clients, of clients with a certificate, of the nodes."""
        roles = ("kafka", "mtls", "controller") if state.secure else ("kafka", "controller")
        names = [f"{role}-{self.number}" for role in roles]
        return {name: state.ports[name] for name in names}

    def daemon(self, home: Path) -> Daemon:
        """Return how the node is recognised, and how it is asked to stop."""
        return Daemon(
            name=self.name,
            program="java",
            marks=frozenset({MAIN, str(self._properties(home))}),
            log=log_of(home, self.name),
            ladder=((signal.SIGTERM, 12),),
        )

    def have_programs(self, site: Site, say: Say) -> None:
        """Download Kafka's jars, if they are missing."""
        have_jars(self.jars, site.java, log_of(site.home, "download"), say)

    def configure(self, site: Site) -> None:
        """Write the node's properties."""
        make_private(self._folder(site.home).parent)
        make_private(self._folder(site.home))
        properties = render(site.home, site.state, self.number)
        write_private(self._properties(site.home), properties)

    def is_set_up(self, home: Path) -> bool:
        """Return whether the data is formatted; the storage tool writes this file last."""
        return (self._folder(home) / "data" / "meta.properties").exists()

    def set_up(self, site: Site) -> None:
        """Format the data directory."""
        arguments = self._folder(site.home) / "format.arguments"
        write_private(arguments, "\n".join(self._format(site)))
        made = subprocess.run(
            [*self._jvm(site.java), "kafka.tools.StorageTool", f"@{arguments}"],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        arguments.unlink()
        if made.returncode:
            reason = last_word(made.stderr + made.stdout)
            raise EmbeddedError(f"{self.name} could not be set up: {reason}")

    def command(self, site: Site) -> list[str]:
        """Return the command line of the node."""
        heap = os.environ.get(
            "KAFKA_HEAP_OPTS", "-Xmx512m"
        ).split()  # the variable that Kafka's own script reads
        options = [*heap, "-XX:+ExitOnOutOfMemoryError", *(f"-D{each}" for each in _DATED)]
        crash = f"-XX:ErrorFile={log_of(site.home, f'{self.name}-crash')}"
        return [*self._jvm(site.java), *options, crash, MAIN, str(self._properties(site.home))]

    def answers(self, site: Site) -> bool:
        """Return whether the node answers, and knows all the others."""
        server = f"{HOST}:{site.state.ports[self.name]}"
        only: KafkaConfig = {"bootstrap.servers": server, "log_level": 0}
        admin = AdminClient({**client_config(site.home, site.state), **only})
        try:
            return len(admin.list_topics(timeout=1).brokers) == site.state.brokers
        except KafkaException:
            return False

    def _format(self, site: Site) -> list[str]:
        state = site.state
        arguments = ["format", "-t", state.cluster_id, "-c", str(self._properties(site.home))]
        if not state.secure:
            return arguments
        users = {ADMIN: state.admin_password, USER: state.password}
        scram = [f"{MECHANISM}=[name={name},password={word}]" for name, word in users.items()]
        return arguments + [part for user in scram for part in ("--add-scram", user)]

    def _jvm(self, java: str) -> list[str]:
        return [java, "-cp", f"{folder_of(self.jars)}/*", *(f"-D{each}" for each in _QUIET)]

    def _properties(self, home: Path) -> Path:
        return self._folder(home) / "server.properties"

    def _folder(self, home: Path) -> Path:
        return home / "kafka" / str(self.number)


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


def _addresses(state: HomeState, door: str) -> str:
    return ",".join(f"{HOST}:{state.ports[f'{door}-{node}']}" for node in state.nodes)
