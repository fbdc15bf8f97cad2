"""What `up` and `status` return: the servers of a home, and how to reach them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harvest_dagster.config import KafkaConfig


@dataclass(frozen=True)
class Server:
    """One server: PostgreSQL, a node of Kafka, an added part; without a pid it does not run."""

    name: str
    port: int
    pid: int | None
    log: Path

    @property
    def running(self) -> bool:
        """Return whether the server runs."""
        return self.pid is not None


@dataclass(frozen=True)
class Mtls:
    """How to reach the servers of a secure home with a certificate, which is the second way."""

    postgres: str = field(repr=False)
    kafka_config: KafkaConfig = field(repr=False)


@dataclass(frozen=True)
class Servers:
    """The servers of a home that was set up; `ready` if all of them answered the last `up`.

    `parts` has what a client of each added part needs to reach it.
    """

    home: Path
    postgres: str = field(repr=False)
    kafka_config: KafkaConfig = field(repr=False)
    each: tuple[Server, ...]
    ready: bool
    mtls: Mtls | None = None
    parts: dict[str, dict[str, str | int]] = field(default_factory=dict, repr=False)

    @property
    def kafka(self) -> str:
        """Return the bootstrap addresses of Kafka."""
        return str(self.kafka_config["bootstrap.servers"])

    @property
    def running(self) -> bool:
        """Return whether all servers run, and have answered."""
        return self.ready and all(server.running for server in self.each)


@dataclass(frozen=True)
class HomeStatus:
    """A home and its servers, which are None if it was never set up."""

    home: Path
    servers: Servers | None

    @property
    def running(self) -> bool:
        """Return whether all servers run, and have answered."""
        return self.servers is not None and self.servers.running
